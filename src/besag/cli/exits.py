"""How a command ends: what it prints when something is wrong, and its exit code.

| code | meaning |
|---|---|
| 0 | all done |
| 1 | `besag models NAME`: the model cannot be used |
| 2 | wrong input, option or model: one line on stderr says what (BESAG_DEBUG=1 shows where) |
| 3 | all done, but some rows could not be scored; their status says why |
| 70 | a fault of besag itself: one line says which (BESAG_DEBUG=1 shows where), and asks you to report it |
| 75 | `besag train --stop-after`: the time is over, the run is not; `--resume` goes on |
| 130 | Ctrl-C; what was written is complete |
| 141 | whoever read the output closed the pipe; nothing is printed, as with any other filter |
| 143 | SIGTERM, by which services and clusters end a process; the same as after Ctrl-C |
"""

from __future__ import annotations

import functools
import inspect
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import ClassVar, ParamSpec, Protocol

import typer

from besag.errors import BesagError, out_of_memory, quoted
from besag.files.claim import released
from besag.files.whole import held_back
from besag.results.tables import shown

LARGEST = 10**18  # a number in an option stays below
UNUSABLE, WRONG, UNSCORED, INTERNAL, UNFINISHED = 1, 2, 3, 70, 75
INTERRUPTED, CLOSED_PIPE, TERMINATED = 130, 141, 143

P = ParamSpec("P")

_at_end: ContextVar[ExitStack | None] = ContextVar("_at_end", default=None)  # of the command that runs


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """A command that returns its exit code and may raise a BesagError, made into one that typer can run."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        CtrlC.last = None
        try:
            with CtrlC().watched(), _ended(command):
                _refuse_beyond(kwargs)
                code = command(*args, **kwargs)
            sys.stdout.flush()
        except BesagError as error:
            if os.environ.get("BESAG_DEBUG"):
                raise
            say(f"error: {as_typed(str(error), command)}")
            code = WRONG
        except BrokenPipeError:
            _drop_stdout()
            code = CLOSED_PIPE
        except OSError as problem:  # a full disk, a file that is gone
            if os.environ.get("BESAG_DEBUG"):
                raise
            _drop_stdout()
            say(f"error: {problem}")
            code = WRONG
        except KeyboardInterrupt:
            say("interrupted")
            code = INTERRUPTED
        except Exception as fault:
            if os.environ.get("BESAG_DEBUG"):
                raise
            code = _say_fault(fault)
        raise typer.Exit(TERMINATED if code == INTERRUPTED and CtrlC.last == signal.SIGTERM else code)

    return run


def at_end(close: Callable[[], None]) -> None:
    """Call this when the command ends, however it does."""
    stack = _at_end.get()
    if stack is not None:
        stack.callback(close)


@contextmanager
def _ended(command: Callable[..., object]) -> Iterator[None]:
    """However a command ends: warnings were told on stderr, outputs are closed, and what it claimed is free."""
    with warnings.catch_warnings(), released(), ExitStack() as stack:
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {as_typed(str(message), command)}")
        before = _at_end.set(stack)
        try:
            yield
        finally:
            _at_end.reset(before)


def _refuse_beyond(given: Mapping[str, object]) -> None:
    """No option is a number of over 64 bits, endless, or none at all, nor holds a NUL, which no path does.

    What else suits each is for its command to say.
    """
    for name, value in given.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and not abs(value) < LARGEST:
            raise BesagError(f"{name}={quoted(value)}: give a finite number of at most 18 digits")
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and "\0" in text:
                raise BesagError(f"{name}={quoted(text)}: it holds a NUL")


def _say_fault(fault: Exception) -> int:
    """What is said of an error that is nobody's but ours, or of the machine's, and the exit code."""
    if out_of_memory(fault):
        say("error: there is not enough memory for this: give less at a time, or a smaller model")
        return WRONG
    if isinstance(fault, RecursionError):
        say("error: something here is nested too deep to be read")
        return WRONG
    say(f"error: a fault of besag, not of yours: {type(fault).__name__}: {quoted(str(fault))}. BESAG_DEBUG=1 shows "
        "where; please report it with the command")  # fmt: skip
    return INTERNAL


def say(message: str) -> None:
    """One line on stderr, in which nothing steers the terminal."""
    print(shown(" ".join(message.split("\n"))), file=sys.stderr)


def as_typed(message: str, command: Callable[..., object]) -> str:
    """A message about arguments, as `allow_pickle=True`, in the words of the command line: `--allow-pickle`.

    Only options of this command are named so: what `--set` takes is written NAME=VALUE there as well.
    """
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        about = [part for part in getattr(parameter.annotation, "__metadata__", ()) if hasattr(part, "param_decls")]
        # typer calls the first spelling the default
        spellings = [about[0].default, *(about[0].param_decls or ())] if about else []
        option = next((str(one).split("/")[0] for one in spellings if str(one).startswith("--")), None)
        if option is not None:
            argument = rf"(?<!--set )(?<![\w'\"=.\[-]){name}="
            message = re.sub(rf"{argument}True\b", option, message)
            message = re.sub(rf"{argument}(?=[\w'\"…(\[-])", f"{option} ", message)
    return message


def _drop_stdout() -> None:
    """Nobody reads stdout any more: keep the interpreter from trying to flush it once again when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except io.UnsupportedOperation:
        sys.stdout = io.StringIO()  # stdout was replaced by something without a descriptor


class Output(Protocol):
    def finish(self) -> None: ...
    def close(self) -> None: ...


class Finished:
    """Was an output written to its end?"""

    finished = False


class CtrlC:
    """Ctrl-C or SIGTERM, held back while something is written that must be whole; a second one is not held back.

    Both raise KeyboardInterrupt. A command that ends by it returns INTERRUPTED, and `guarded` knows which one it was.
    """

    last: ClassVar[int | None] = None  # the signal that came last

    def __init__(self) -> None:
        self._process = os.getpid()

    @contextmanager
    def watched(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
            yield
            return
        kept = (signal.SIG_IGN, None)  # what is ignored, as in the background of a shell, stays so
        signals = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) not in kept]
        before = {one: signal.signal(one, self._arrived) for one in signals}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    held_back = staticmethod(held_back)

    @contextmanager
    def whole(self, out: Output) -> Iterator[Finished]:
        """What is written in here is finished and closed at the end; Ctrl-C ends it before, and is told."""
        told = Finished()
        with self.watched():
            try:
                yield told
                with self.held_back():
                    out.finish()
                    told.finished = True
            except KeyboardInterrupt:
                pass
            finally:
                with self.held_back():
                    out.close()

    def _arrived(self, number: int, frame: object) -> None:
        if os.getpid() != self._process:  # a worker that was split off ends as it would without us
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
            return
        CtrlC.last = number
        raise KeyboardInterrupt
