"""Suites run item by item into a folder, so that a run that was stopped or killed goes on.

FOLDER/items.jsonl            a row for each item that is judged
FOLDER/items.jsonl.progress   how far they are (files/progress.py); gone when the figures, which are made of them, are there
"""  # noqa: E501 (a path a line)

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from besag.cli.exits import CtrlC, at_end
from besag.cli.score import command
from besag.errors import BesagError
from besag.files.progress import BLOCK, Resumable

TEXTS = 4  # of an item, about: a block of items is as much work as one of texts

if TYPE_CHECKING:
    from besag.evaluation.evaluation import Evaluation
    from besag.evaluation.running import Task


def items(folder: str | None, force: bool, resume: bool) -> Resumable | None:
    """Where rows are kept; nowhere without a folder. What is of no use any more is gone before a row is written."""
    if folder is None:
        if resume:
            raise BesagError("--resume goes on with a folder: say which with --output")
        return None
    from besag.evaluation.saved import FIGURES, ITEMS, REPORT, RUN

    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise BesagError(f"{folder!r} is a file: results are written into a folder")
    strange = sorted(one.name for one in place.iterdir() if not one.name.startswith(".")) if place.exists() else []
    if strange and not (place / ITEMS).exists() and not (place / f"{ITEMS}.progress").exists():
        raise BesagError(
            f"{folder!r} is there, and holds {', '.join(strange[:5])}: choose an empty --output, or a new one"
        )
    if not place.exists():
        at_end(lambda: _remove_empty(place))
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise BesagError(f"cannot make the folder {folder!r}: {failure.strerror}") from failure
    kept = Resumable("jsonl", str(place / ITEMS), force=force, resume=resume, go_on=command())
    at_end(kept.close)
    if not kept.resume:
        for name in (RUN, FIGURES, REPORT):
            with suppress(FileNotFoundError):
                os.unlink(place / name)
    return kept


def _remove_empty(place: Path) -> None:
    with suppress(OSError):  # it holds something, or is not there
        place.rmdir()


class Evaluating:
    """All items of all tasks, block by block."""

    def __init__(self, work: Sequence[Task], kept: Resumable | None) -> None:
        self.work, self.kept = work, kept
        self.rows: list[list[dict[str, Any]]] = [[] for _ in work]
        self.total = sum(len(task.items) for task in work)
        devices = {task.lm.engine.conditionals.device.type for task in work}
        self.block = max(1, max(BLOCK[device] for device in devices) // TEXTS)

    @property
    def done(self) -> int:
        return sum(map(len, self.rows))

    @property
    def go_on(self) -> str:
        return "" if self.kept is None else f"; go on with {command()}"

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Take up what an earlier run of the same settings has left."""
        if self.kept is None:
            return
        state = self.kept.begin(settings)
        batches = [None] * len(self._engines) if state is None else state["batches"]
        for engine, found in zip(self._engines, batches, strict=True):
            engine.repeat(found)
        if state is None:
            return
        earlier = _read(self.kept.path, state["rows"])
        for own, task in zip(self.rows, self.work, strict=True):
            own.extend(islice(earlier, len(task.items)))

    def through(self) -> bool:
        """Judge all items; False after Ctrl-C or SIGTERM."""
        from besag.evaluation.saved import plain

        ctrl_c = CtrlC()
        with ctrl_c.watched():
            try:
                for own, task in zip(self.rows, self.work, strict=True):
                    for row in task.rows(len(own), None if self.kept is None else self.block):
                        with ctrl_c.held_back():
                            own.append(plain({**task.about, **row}))
                            self._keep(own, task)
            except KeyboardInterrupt:
                return False
        return True

    def found(self) -> list[Evaluation]:
        from besag.evaluation.running import evaluations

        return evaluations(list(zip(self.work, self.rows, strict=True)))

    def finish(self) -> None:
        """The figures are written: there is nothing left to go on with."""
        if self.kept is not None:
            self.kept.finish()

    @property
    def _engines(self) -> list[Any]:
        return list({id(task.lm.engine): task.lm.engine for task in self.work}.values())

    def _keep(self, own: Sequence[Mapping[str, Any]], task: Task) -> None:
        from besag.evaluation.saved import written

        if self.kept is None:
            return
        self.kept.write(written(own[-1]), {})
        if len(own) % self.block == 0 or len(own) == len(task.items):
            self.kept.end_block({"rows": self.done, "batches": [engine.found for engine in self._engines]})


def _read(path: str, rows: int) -> Any:
    """The first rows of a file, one by one."""
    from besag.evaluation.saved import revived

    with open(path, encoding="utf-8") as file:
        yield from (revived(json.loads(line)) for line in islice(file, rows))
