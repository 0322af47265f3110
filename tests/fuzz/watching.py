"""Runs one hostile input and says what is wrong with how it ended, or nothing.

exit code     one of those that docs/cli.md lists, and not that of an internal error
time          at most 30 s
numbers       no NaN or inf in a row whose status is ok
files         no draft stays behind
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import besag
from besag.cli import app
from besag.errors import BesagError
from besag.results.result import Result

LONGEST = 30  # seconds
CODES = (0, 1, 2, 3)  # nobody presses Ctrl-C or closes a pipe here


class TooLong(BaseException):
    """No Exception: nothing on the way may catch it."""


@contextmanager
def watchdog(seconds: int = LONGEST) -> Iterator[None]:
    def bark(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def where(error: BaseException | None) -> str:
    """The last line of besag's own that an error came through."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    own = [frame for frame in frames if f"{os.sep}besag{os.sep}" in frame.filename] or list(frames)
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"


@contextmanager
def remembered(model: str) -> Iterator[None]:
    """`besag.load` without the time that it takes, for the model that most commands are given; and no Ray."""
    from besag.bulk.pipeline import Pool
    from besag.bulk.working import Worker
    from besag.load_model import load

    def here(self: Pool, reader: Any, units: Any, work: Any) -> Iterator[Any]:
        worker = Worker(work)
        return (worker(read) for unit in units for read in reader.read(unit))

    known: dict[Any, besag.LanguageModel] = {}

    def quick(wanted: Any = None, **options: Any) -> besag.LanguageModel:
        if wanted != model:
            return load(wanted, **options)
        key = tuple(options.items())
        if key not in known:
            known[key] = load(wanted, **options)
        return known[key]

    before, pool, check = besag.load, Pool.__call__, Pool.check
    besag.load, Pool.__call__, Pool.check = quick, here, lambda self: None  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        besag.load, Pool.__call__, Pool.check = before, pool, check  # type: ignore[method-assign]


def unfit(value: Any) -> bool:
    """Is there a NaN or an infinity in it?"""
    if isinstance(value, dict):
        return any(map(unfit, value.values()))
    if isinstance(value, list | tuple):
        return any(map(unfit, value))
    return isinstance(value, float) and not math.isfinite(value)


class Ended(NamedTuple):
    """How a command ended."""

    code: Any
    stdout: str
    error: BaseException | None


def run(line: list[str], stdin: bytes = b"") -> Ended:
    """`besag line` inside this process, with streams as `besag.cli.main` has them."""
    raw = io.BytesIO()
    streams = io.TextIOWrapper(io.BytesIO(stdin), "utf-8"), io.TextIOWrapper(raw, "utf-8")
    told = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    kept = sys.stdin, sys.stdout, sys.stderr
    raw.close = lambda: None  # type: ignore[method-assign] # read after whoever closed it
    sys.stdin, sys.stdout, sys.stderr = *streams, told
    code, error = 0, None
    try:
        app(line, prog_name="besag")
    except SystemExit as end:
        code = end.code
    except BaseException as other:
        error = other
    finally:
        with suppress(ValueError, OSError):
            streams[1].flush()
        sys.stdin, sys.stdout, sys.stderr = kept
    return Ended(code, raw.getvalue().decode("utf-8", "replace"), error)


def command(line: list[str], folder: Path, stdin: bytes = b"") -> tuple[str | None, Any]:
    """Run `besag line` in `folder`, which is emptied first: what is wrong with how it ends, and the exit code."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    faults: list[BaseException] = []
    with _noticing(faults), chdir(folder), warnings.catch_warnings(), watchdog():
        warnings.simplefilter("ignore")  # under pytest they would be errors
        ended = run(line, stdin)
    return _wrong(ended, ended.error or next(iter(faults), None), folder), ended.code


def _wrong(ended: Ended, fault: BaseException | None, folder: Path) -> str | None:
    if isinstance(fault, TooLong):
        return f"over {LONGEST} s at {where(ended.error)}"
    if fault is not None:
        return f"{type(fault).__name__} at {where(fault)}: {str(fault)[:120]!r}"
    if ended.code not in CODES:
        return f"exit code {ended.code}"
    if (drafts := [path.name for path in folder.rglob(".*") if path.name != ".lock"]) != []:
        return f"left behind: {drafts}"
    return wrong_rows(ended.stdout)


@contextmanager
def _noticing(fault: list[BaseException]) -> Iterator[None]:
    """What internal errors a command meets, with where."""
    from besag.cli import exits

    told = exits._say_fault

    def notice(error: Exception) -> int:
        code = told(error)
        if code == exits.INTERNAL:
            fault.append(error)
        return code

    exits._say_fault = notice
    try:
        yield
    finally:
        exits._say_fault = told


def wrong_rows(printed: str) -> str | None:
    for row in printed.splitlines():
        if row.startswith("{"):
            try:
                found = json.loads(row)
            except ValueError:
                continue
            if found.get("status", "ok") == "ok" and unfit(found):
                return f"not finite: {row[:120]}"
    return None


def call(run: Callable[[], Any], may_raise: tuple[type[Exception], ...] = ()) -> str | None:
    """Call it: what is wrong with what comes of it?"""
    try:
        with watchdog(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run()
            if hasattr(found, "__next__"):
                found = list(found)
    except TooLong as late:
        return f"over {LONGEST} s at {where(late)}"
    except (BesagError, *may_raise):
        return None
    except Exception as error:
        return f"{type(error).__name__} at {where(error)}: {str(error)[:120]!r}"
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, Result) and one.status == "ok" and unfit(one.to_dict()):
            return f"not finite: {one!r:.120}"
        if isinstance(one, float) and math.isnan(one):
            return "not a number"
    return None
