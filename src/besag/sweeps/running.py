"""Runs and judgements as processes: a few at a time, each with a log; what is finished is not done again.

    DIR/runs/NAME.toml     the recipe of a run, whole
    DIR/runs/NAME/         the run: what `besag train` writes
    DIR/runs/NAME.log      what it said
    DIR/judged/NAME/       what `besag eval` writes: items, figures, a report
    DIR/judged/NAME.log

Ctrl-C is passed on once to every process, so that each leaves a checkpoint; the same call goes on. Knows commands and
folders, and nothing of networks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from besag.errors import BesagError
from besag.evaluation import saved
from besag.files.progress import differences
from besag.files.whole import write_whole
from besag.sweeps.cells import Cell
from besag.training.recipe import to_toml
from besag.training.run.claim import MODEL, begun

RUNS, JUDGED = "runs", "judged"
MOMENT = 0.1  # seconds between two looks at the processes


class Work(NamedTuple):
    """A command to run, and where it speaks."""

    name: str
    command: tuple[str, ...]
    log: Path


class Judges(NamedTuple):
    """How finished models are judged."""

    suites: Sequence[str]
    data: str | None = None
    method: str | None = None
    limit: int | None = None

    @property
    def words(self) -> list[str]:
        """As `besag eval` takes them."""
        said = {"--data": self.data, "--method": self.method, "--limit": self.limit}
        return [*self.suites, *(str(word) for key, value in said.items() if value is not None for word in (key, value))]


def write_recipes(folder: Path, cells: Sequence[Cell]) -> None:
    """Each run's recipe, as a file; one that is there and says something else is no run of this sweep."""
    place = folder / RUNS
    wanted = {cell.name: to_toml(cell.recipe, beside=place) for cell in cells}
    for name, text in wanted.items():
        path = place / f"{name}.toml"
        if path.exists() and begun(place / name):
            differ = differences(_keys(path.read_text(encoding="utf-8")), _keys(text))
            if differ:
                raise BesagError(f"{str(place / name)!r} was begun otherwise: {'; '.join(differ)}. Take another folder")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise BesagError(f"cannot make the folder {str(folder)!r}: {failure.strerror}") from failure
    for name, text in wanted.items():
        write_whole(place / f"{name}.toml", text)


def _keys(text: str) -> dict[str, Any]:
    """What a recipe says, by section.key."""
    return {f"{section}.{key}": value for section, keys in tomllib.loads(text).items() for key, value in keys.items()}


def model_of(folder: Path, cell: Cell) -> Path:
    """Where a finished run has its network."""
    return folder / RUNS / cell.name / MODEL


def training(folder: Path, cells: Sequence[Cell]) -> list[Work]:
    """What is left to train."""
    left = [cell for cell in cells if not model_of(folder, cell).is_dir()]
    found = []
    for cell in left:
        place = folder / RUNS / cell.name
        again = ["--resume"] if begun(place) else []
        words = ["train", f"{place}.toml", "--quiet", *again]
        found.append(Work(cell.name, besag(*words), Path(f"{place}.log")))
    return found


def judging(folder: Path, cells: Sequence[Cell], judges: Judges) -> list[Work]:
    """What is left to judge: finished models that were not judged so."""
    found = []
    note = json.dumps(judges.words)
    for cell in cells:
        place = folder / JUDGED / cell.name
        asked = Path(f"{place}.json")  # how, of the judgement that is there
        same = asked.exists() and asked.read_text(encoding="utf-8") == note
        if not judges.suites or not model_of(folder, cell).is_dir() or (same and saved.is_complete(place)):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if not same:
            # first, so that what was measured with other settings never counts as this
            (place / saved.RUN).unlink(missing_ok=True)
            write_whole(asked, note)
        again = "--resume" if same and saved.is_begun(place) else "--force"
        words = ["eval", "run", *judges.words, "-m", model_of(folder, cell), "-o", place, again, "--quiet"]
        found.append(Work(cell.name, besag(*words), Path(f"{place}.log")))
    return found


def besag(*words: object) -> tuple[str, ...]:
    return (sys.executable, "-m", "besag", *map(str, words))


def carried_out(work: Sequence[Work], jobs: int, accepted: Sequence[int] = (0,)) -> Generator[tuple[Work, str]]:
    """Each piece when it is over, with what went wrong ("" for nothing); `jobs` of them run at a time."""
    waiting, running = list(reversed(work)), dict[Work, subprocess.Popen[bytes]]()
    threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // jobs))} if jobs > 1 else {}
    with _stopped_together(running):
        while waiting or running:
            while waiting and len(running) < jobs:
                one = waiting.pop()
                with one.log.open("wb") as log:
                    running[one] = subprocess.Popen(
                        one.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**threads, **os.environ},
                        start_new_session=True,
                    )  # fmt: skip
            over = [one for one, process in running.items() if process.poll() is not None]
            for one in over:
                code = running.pop(one).returncode
                yield one, "" if code in accepted else _last_words(one.log, code)
            if not over:
                time.sleep(MOMENT)


@contextmanager
def _stopped_together(running: dict[Work, subprocess.Popen[bytes]]) -> Iterator[None]:
    """However this ends, no process is left behind: each is asked once to stop, as by Ctrl-C, and waited for."""
    try:
        yield
    finally:
        for process in running.values():
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
        for process in running.values():
            process.wait()


def _last_words(log: Path, code: int) -> str:
    """The last line that a process said."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else f"it ended with {code}"
