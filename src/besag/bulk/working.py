"""One shard: records in, a finished file and a note out. The part of the work that a process does, with no Ray in it.

What goes wrong with a row is that row's affair: where a block fails as a whole, its rows are tried one by one, and
those that fail alone have the status "failed". What goes wrong with everything (a model that cannot be loaded, a disk
that is full) stops the job with a sentence.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from besag.bulk.keeping import Keep
from besag.bulk.reading import Read
from besag.bulk.shapes import Pair, Shape
from besag.bulk.store import Folder
from besag.bulk.verbs import Opened, Verb
from besag.errors import BesagError
from besag.files.encoding import Row
from besag.files.inputs import Record
from besag.files.progress import in_blocks
from besag.results.status import Status

SHARDS = "shards"
MOST_REASONS = 3  # of failed rows, in a note
DOWN = (RuntimeError, MemoryError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class Note:
    """What came of a shard."""

    shard: int
    rows: int = 0
    kept: int = 0  # rows of input that --keep has kept
    tokens: int = 0  # through the network
    seconds: float = 0.0
    states: dict[str, int] = field(default_factory=dict)
    failed: list[list[Any]] = field(default_factory=list)  # number and reason of some rows
    at: float = 0.0  # seconds since 1970
    stop: str = ""  # why nothing more can be done

    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def of(cls, line: str) -> Note:
        return cls(**json.loads(line))


@dataclass(frozen=True)
class Work:
    """All that a process must be told to work on shards."""

    verb: Verb
    shape: Shape
    folder: str
    block: int  # rows that go to the engine together
    keep: Keep | None = None
    threads: int | None = None  # of torch


def shard_name(number: int, format: str, failed: bool = False) -> str:
    """Of a finished shard, and of one with failed rows, which a resumed job tries again."""
    return f"{SHARDS}/{number:06}{'.failed' * failed}.{format}"


class Worker:
    """Loads the model with the first shard, and keeps it."""

    def __init__(self, work: Work) -> None:
        self.work, self.stop = work, ""
        self.folder = Folder(work.folder)
        self._verb: Opened | None = None

    def __call__(self, read: Read) -> Note:
        if not self.stop:
            try:
                return self._shard(read)
            except (BesagError, OSError) as problem:
                self.stop = str(problem)
        return Note(read.number, stop=self.stop)

    def _open(self) -> Opened:
        if self._verb is None:
            import torch

            if self.work.threads is not None:
                torch.set_num_threads(self.work.threads)
            self._verb = self.work.verb.open()
            trial = Record(1, "a first trial", self.work.verb.trial, dict.fromkeys(self.work.shape.others))
            for _, rows in self._verb.rows([trial]):  # what is wrong for all rows is said here
                if self.work.keep is not None:
                    self.work.keep.check(rows[0], self.work.verb.number)
        return self._verb

    def _shard(self, read: Read) -> Note:
        verb = self._open()
        began, before = time.perf_counter(), verb.lm.engine.tokens_run
        results, reasons = self._results(verb, read)
        states = Counter(str(rows[0]["status"]) for _, rows in results)
        kept: list[Pair] = []
        count = 0
        for record, rows in results:
            staying = [row for row in rows if self._stays(row)]
            kept += [(row, record.others) for row in staying]
            count += bool(staying)
        content = self.work.shape.encode(kept, list(results[0][1][0]))
        failed = [[number, why] for number, why in list(reasons.items())[:MOST_REASONS]]
        self._write(read.number, content, bool(reasons))
        return Note(
            read.number, len(results), count, verb.lm.engine.tokens_run - before, time.perf_counter() - began,
            dict(states), failed, time.time(),
        )  # fmt: skip

    def _stays(self, row: Row) -> bool:
        return self.work.keep is None or row["status"] != Status.OK or self.work.keep(row, self.work.verb.number)

    def _write(self, number: int, content: bytes, failed: bool) -> None:
        """Under its name when all of it is there; what an earlier run could not do goes when this one could."""
        format = self.work.shape.format
        if not self.folder.remote and not os.path.isdir(self.folder.at(SHARDS)):
            raise BesagError(
                f"{self.folder.path!r} is not there on every machine of the cluster: give a folder on a disk that all "
                "share, or a URL"
            )
        self.folder.write(shard_name(number, format, failed), content)
        if not failed:
            self.folder.remove(shard_name(number, format, failed=True))

    def _results(self, verb: Opened, read: Read) -> tuple[list[tuple[Record, list[Row]]], dict[int, str]]:
        """Every record with its rows; and of those that failed, why."""
        reasons: dict[int, str] = {}
        try:
            found = list(verb.rows(in_blocks(read.records, self.work.block)))
        except DOWN:
            found = [self._alone(verb, record, reasons) for record in read.records]
            if len(reasons) == len(found) > 1:
                raise BesagError(f"every row of shard {read.number} fails: {next(iter(reasons.values()))}") from None
        return [
            (record, _marked(rows, Status.UNREADABLE) if record.number in read.problems else rows)
            for record, rows in found
        ], reasons

    def _alone(self, verb: Opened, record: Record, reasons: dict[int, str]) -> tuple[Record, list[Row]]:
        try:
            [(found, rows)] = verb.rows([record])
            return found, rows
        except DOWN as failure:
            reasons[record.number] = " ".join(str(failure).split()) or type(failure).__name__
        [(found, rows)] = verb.rows([record._replace(text="")])  # the columns of a row that says nothing
        return found, [{**row, "text": record.text} if "text" in row else row for row in _marked(rows, Status.FAILED)]


def _marked(rows: Sequence[Row], status: Status) -> list[Row]:
    return [{**row, "status": status} for row in rows]
