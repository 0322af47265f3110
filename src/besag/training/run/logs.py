"""What a run writes down while it goes: OUTPUT/log.jsonl, TensorBoard's files, a progress bar.

One JSON object a line and a logged step, appended and never changed, so that a killed run leaves at most one torn line.
A resumed run cuts that line off, and every line after the checkpoint it goes on from; what it will evaluate anew at
that step, too, so that a run killed between its last evaluation and its end tells it once. Numbers that are not finite
are written as null, which is JSON; `read` gives them back as nan.

A run uses it so (on one process; the others need no log):

    with Log.begin(recipe, step=0, tokens=0, seconds=0.0) as log:      # step … of the checkpoint, when resumed
        log.advance(step, tokens, seconds, loss)                       # every step: moves the bar
        log.record({"step": …, "tokens": …, "seconds": …, "loss": …, "lr": …, "grad_norm": …,
                    "tokens_per_second": …, "rate": …})                # every run.log_every steps
        log.record({"step": …, "tokens": …, "heldout_loss": …})        # what the monitor says, under its own names
        log.sync()                                                     # before a checkpoint is said to be whole

`seconds` counts training alone, over all parts of a resumed run. Knows files; refuses to know models and losses.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from besag.checks import is_number
from besag.errors import BesagError, quoted
from besag.files.whole import whole
from besag.training.recipe import checks as recipe_checks
from besag.training.run import claim

if TYPE_CHECKING:
    from besag.training.recipe import Recipe

NAME = claim.LOG
BOARD = "tensorboard"  # folder of its event files
TRAINING = ("step", "tokens", "seconds", "loss", "lr", "grad_norm", "tokens_per_second", "rate")  # all else: evaluation
LINE_SECONDS = 30.0  # between two lines where there is no terminal to draw a bar in


class Log:
    """The log of one run; see the top of this file."""

    def __init__(
        self,
        folder: str | Path,
        *,
        step: int = 0,
        evaluates: bool = False,
        progress: Progress | None = None,
        live: Callable[[Path], object] | None = None,
        tensorboard: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self.path = self.folder / NAME
        self._progress, self._live = progress, live
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            mend(self.path, step, evaluates)
            # without a buffer: what a full disk does not take is told at once, and not when the file is closed
            self._file: IO[bytes] = open(self.path, "ab", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._board = _board(self.folder / BOARD, step) if tensorboard else None

    @classmethod
    def begin(
        cls,
        recipe: Recipe,
        *,
        step: int = 0,
        tokens: int = 0,
        seconds: float = 0.0,
        evaluates: bool = False,
        quiet: bool = False,
        tensorboard: bool = True,
    ) -> Log:
        """The log of a recipe's run, in its output folder, from a checkpoint (or the start) on.

        `evaluates`: the run will evaluate at that very step, before any other.
        """
        from besag.training.run.curves import Live

        kind, total = recipe_checks.total(recipe)
        done = {"steps": step, "tokens": tokens, "minutes": seconds / 60}[kind]
        progress = None if quiet else Progress(kind, total, done)
        live = Live() if recipe.run.plot else None
        folder = recipe.run.output
        return cls(folder, step=step, evaluates=evaluates, progress=progress, live=live, tensorboard=tensorboard)

    def advance(self, step: int, tokens: int, seconds: float, loss: float | None = None) -> None:
        """A step is done. `loss` may be left out: to ask a GPU for it at every step would make it wait."""
        if self._progress is not None:
            self._progress.advance(step, tokens, seconds, loss)

    def record(self, numbers: Mapping[str, float]) -> None:
        """One line. It must have a "step"."""
        plain = {name: _plain(value) for name, value in numbers.items()}
        step = int(numbers["step"])
        raw = (json.dumps(plain, allow_nan=False) + "\n").encode()
        with self._writing():
            while raw:
                raw = raw[self._file.write(raw) :]
        if self._board is not None:
            self._board.add(step, plain)
        if self._progress is not None:
            self._progress.note(numbers)
        if self._live is not None:
            self._live(self.folder)

    def sync(self) -> None:
        """Make sure that what was recorded is on the disk."""
        with self._writing():
            os.fsync(self._file.fileno())
        if self._board is not None:
            self._board.flush()

    def close(self) -> None:
        if not self._file.closed:
            self.sync()
            self._file.close()
        if self._board is not None:
            self._board.close()
        if self._progress is not None:
            self._progress.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise BesagError(
                f"the log {str(self.path)!r} could not be written: {problem.strerror}. What was saved so far is whole: "
                "make room and go on with --resume"
            ) from problem

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def _plain(value: Any) -> int | float | None:
    number = value if isinstance(value, int) else float(value)
    return number if math.isfinite(number) else None


def _board(folder: Path, step: int) -> _Board | None:
    """A writer for TensorBoard, or None where that is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return _Board(SummaryWriter, folder, step)


class _Board:
    """TensorBoard's files. They are a second copy: if they cannot be written, this is said once and the run goes on."""

    def __init__(self, maker: Any, folder: Path, step: int) -> None:
        self._writer: Any = None
        with self._spared():
            self._writer = maker(str(folder), purge_step=step + 1 if step else None)

    def add(self, step: int, numbers: Mapping[str, float | None]) -> None:
        with self._spared():
            for name, value in numbers.items():
                if name != "step" and value is not None and self._writer is not None:
                    group = "training" if name in TRAINING else "evaluation"
                    self._writer.add_scalar(f"{group}/{name}", value, step)

    def flush(self) -> None:
        with self._spared():
            if self._writer is not None:
                self._writer.flush()

    def close(self) -> None:
        with self._spared():
            if self._writer is not None:
                self._writer.close()

    @contextmanager
    def _spared(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self._writer = None
            warnings.warn(f"TensorBoard's files are not written any more: {problem.strerror}", stacklevel=3)


# ---- the file


def mend(path: Path, step: int, evaluates: bool = False) -> None:
    """Cut a torn last line off, and all lines after `step`; the file is replaced as a whole or not at all.

    `evaluates`: the evaluation of that step goes as well, for it is made anew.
    """
    if not path.exists():
        return
    content = path.read_bytes()
    kept = b"".join(line for line in content.splitlines(keepends=True) if _stays(_row(line, path), step, evaluates))
    if kept == content:
        return
    with whole(path) as draft:
        draft.write_bytes(kept)


def _stays(row: dict[str, float], step: int, evaluates: bool) -> bool:
    return row["step"] < step or (row["step"] == step and not (evaluates and is_evaluation(row)))


def is_evaluation(row: Mapping[str, float]) -> bool:
    """Did somebody look at the network, or does the line tell of training?"""
    return "loss" not in row


def _row(line: bytes, path: Path) -> dict[str, float]:
    """The numbers of a line; null is nan. A line without an end is torn, and later than everything."""
    if not line.endswith(b"\n"):
        return {"step": math.inf}
    try:
        said = json.loads(line)
        row = {name: math.nan if value is None else value for name, value in said.items()}
        if all(is_number(value) for value in row.values()) and math.isfinite(row["step"]):
            return row
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        pass  # whatever it is
    raise BesagError(f"{path} holds a line that is none of a log: {quoted(line[:60])}")


def read(folder: str | Path) -> list[dict[str, float]]:
    """The lines of a run's log, given its folder or the file; null is nan, and a torn last line is passed over."""
    path = Path(folder)
    try:
        path = path / NAME if path.is_dir() else path
        content = path.read_bytes()
    except (OSError, ValueError) as failure:  # ValueError: NUL in a name
        why = getattr(failure, "strerror", None) or failure
        raise BesagError(f"{quoted(str(folder))} is no run: {quoted(str(path))} cannot be read ({why})") from failure
    rows = (_row(line, path) for line in content.splitlines(keepends=True))
    return [row for row in rows if row["step"] < math.inf]


# ---- the bar


class Progress:
    """How far a run is and when it will be done: a bar in a terminal, elsewhere a line now and then; on stderr."""

    def __init__(self, kind: str, total: float, done: float = 0.0) -> None:
        self.kind = kind
        self._total, self._done, self._first = total, done, done
        self._loss: list[float] = []
        self._speed = math.nan
        self._step = 0
        self._bar: Any = None
        self._begun = self._said = time.monotonic()
        if sys.stderr.isatty():
            from tqdm import tqdm

            ends = "{n_fmt}/{total_fmt}" if kind != "minutes" else "{n:.1f}/{total:g}"
            self._bar = tqdm(
                total=total,
                initial=done,
                unit="" if kind == "minutes" else f" {kind}",
                unit_scale=kind == "tokens",
                bar_format="{percentage:3.0f}%|{bar}| " + ends + f" {kind} " + "[{elapsed}<{remaining}{postfix}]",
                file=sys.stderr,
                dynamic_ncols=True,
                smoothing=0.05,
            )

    def advance(self, step: int, tokens: int, seconds: float, loss: float | None = None) -> None:
        now = {"steps": float(step), "tokens": float(tokens), "minutes": seconds / 60}[self.kind]
        now = min(now, self._total)
        if loss is not None and math.isfinite(loss):
            self._loss.append(loss)
        self._step = step
        if self._bar is not None:
            self._bar.update(now - self._done)
        self._done = now
        if self._bar is None and time.monotonic() - self._said >= LINE_SECONDS:
            self._said = time.monotonic()
            print(self.line(), file=sys.stderr, flush=True)

    def note(self, numbers: Mapping[str, float]) -> None:
        """What was logged: the latest loss and speed stand behind the bar."""
        loss = numbers.get("loss", math.nan)
        if math.isfinite(loss):
            self._loss.append(loss)
        self._speed = numbers.get("tokens_per_second", self._speed)
        if self._bar is not None:
            self._bar.set_postfix_str(self._said_of_loss(), refresh=False)

    def _said_of_loss(self) -> str:
        from besag.training.run.curves import sparkline

        if not self._loss:
            return ""
        return f"loss {self._loss[-1]:.3f} {sparkline(self._loss, 16)}"

    def left(self) -> float:
        """Seconds until the end, as things went since this process began."""
        elapsed = time.monotonic() - self._begun
        if self.kind == "minutes":
            return 60 * (self._total - self._done)
        return elapsed * (self._total - self._done) / max(self._done - self._first, 1e-9)

    def line(self) -> str:
        """Everything in one line."""
        parts = [f"step {self._step:,}", f"{100 * self._done / self._total:.0f}%", self._said_of_loss()]
        if math.isfinite(self._speed):
            parts.append(f"{self._speed:,.0f} tokens/s")
        if self._done > self._first or self.kind == "minutes":
            parts.append(f"{duration(self.left())} left")
        return " · ".join(filter(None, parts))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def duration(seconds: float) -> str:
    """0:05, 12:34 or 3:04:05.

    >>> duration(754), duration(11045.2)
    ('12:34', '3:04:05')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
