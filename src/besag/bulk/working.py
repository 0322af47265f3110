"""One shard: records in, a finished file and a note out. The part of the work that a process does, with no Ray in it.

What goes wrong with a row is that row's affair: where a block fails as a whole, its rows are tried one by one, and
those that fail alone have the status "failed". So have the rows of a shard whose process has died several times. What
goes wrong with everything (a model that cannot be loaded, a disk that is full) stops the job with a sentence.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from besag.bulk.keeping import Keep
from besag.bulk.reading import Read
from besag.bulk.shapes import Shape
from besag.bulk.store import Folder
from besag.bulk.verbs import Opened, Verb
from besag.errors import BesagError
from besag.files.encoding import Row
from besag.files.inputs import Record
from besag.files.progress import in_blocks
from besag.results.status import Status

SHARDS = "shards"
MOST_REASONS = 3  # of failed rows, in a note
MOST_TRIES = 5  # of a shard whose process dies: one that kills it each time must not go on for ever
DOWN = (RuntimeError, MemoryError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)

Results: TypeAlias = list[tuple[Record, list[Row]]]
Reasons: TypeAlias = dict[int, str]  # by the number of the row


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


class Hand:
    """A verb that is opened with its first rows, and asked with care."""

    def __init__(self, verb: Verb, block: int, keep: Keep | None = None, threads: int | None = None) -> None:
        self.verb, self.block, self.keep, self.threads = verb, block, keep, threads
        self._opened: Opened | None = None

    def open(self) -> Opened:
        if self._opened is None:
            import torch

            if self.threads is not None:
                torch.set_num_threads(self.threads)
            opened = self.verb.open()
            for _, rows in opened.rows([Record(1, "a first trial", self.verb.trial, {})]):  # what is wrong for all rows
                if self.keep is not None:
                    self.keep.check(rows[0], self.verb.number)
            self._opened = opened
        return self._opened

    def results(self, records: Sequence[Record], problems: Mapping[int, str]) -> tuple[Results, Reasons]:
        """Every record with its rows; and of those that failed, why."""
        reasons: Reasons = {}
        try:
            found = list(self.open().rows(in_blocks(records, self.block)))
        except DOWN:
            found = [self._alone(record, reasons) for record in records]
            if len(reasons) == len(found) > 1:
                raise BesagError(f"every row fails: {next(iter(reasons.values()))}") from None
        unreadable = [
            (record, _marked(rows, Status.UNREADABLE) if record.number in problems else rows) for record, rows in found
        ]
        return unreadable, reasons

    def stays(self, row: Row) -> bool:
        return self.keep is None or row["status"] != Status.OK or self.keep(row, self.verb.number)

    def _alone(self, record: Record, reasons: Reasons) -> tuple[Record, list[Row]]:
        try:
            [found] = self.open().rows([record])
            return found
        except DOWN as failure:
            reasons[record.number] = " ".join(str(failure).split()) or type(failure).__name__
        return self.given_up(record)

    def given_up(self, record: Record) -> tuple[Record, list[Row]]:
        """The columns of a row that says nothing."""
        [(found, rows)] = self.open().rows([record._replace(text="")])
        return found, [{**row, "text": record.text} if "text" in row else row for row in _marked(rows, Status.FAILED)]


def _marked(rows: Sequence[Row], status: Status) -> list[Row]:
    return [{**row, "status": status} for row in rows]


class Worker:
    """Works on shards and writes them. The model is loaded with the first, and stays."""

    def __init__(self, work: Work) -> None:
        self.shape, self.folder, self.stop = work.shape, Folder(work.folder), ""
        self.hand = Hand(work.verb, work.block, work.keep, work.threads)

    def __call__(self, read: Read) -> Note:
        if not self.stop:
            try:
                return self._shard(read)
            except (BesagError, OSError) as problem:
                self.stop = str(problem)
        return Note(read.number, stop=self.stop)

    def _shard(self, read: Read) -> Note:
        engine = self.hand.open().lm.engine
        began, before = time.perf_counter(), engine.tokens_run
        tries = self._tries(read.number)
        if tries < MOST_TRIES:
            results, reasons = self.hand.results(read.records, read.problems)
        else:
            results = [self.hand.given_up(record) for record in read.records]
            reasons = {record.number: f"the process died {tries} times" for record in read.records}
        kept = [
            (record, staying) for record, rows in results if (staying := [row for row in rows if self.hand.stays(row)])
        ]
        pairs = [(row, record.others) for record, rows in kept for row in rows]
        self._write(read.number, self.shape.encode(pairs, list(results[0][1][0])), bool(reasons))
        return Note(
            read.number, len(results), len(kept), engine.tokens_run - before, time.perf_counter() - began,
            dict(Counter(str(rows[0]["status"]) for _, rows in results)),
            [[number, why] for number, why in list(reasons.items())[:MOST_REASONS]], time.time(),
        )  # fmt: skip

    def _tries(self, number: int) -> int:
        """How often this shard was begun and not ended; this time is noted, too."""
        if not self.folder.remote and not os.path.isdir(self.folder.at(SHARDS)):
            raise BesagError(
                f"{self.folder.path!r} is not there on every machine of the cluster: give a folder on a disk that all "
                "share, or a URL"
            )
        name = _tries_name(number)
        before = int(self.folder.read(name) or b"0") if self.folder.has(name) else 0
        self.folder.write(name, b"%d" % (before + 1))
        return before

    def _write(self, number: int, content: bytes, failed: bool) -> None:
        """Under its name when all of it is there; what an earlier run could not do goes when this one could."""
        self.folder.write(shard_name(number, self.shape.format, failed), content)
        if not failed:
            self.folder.remove(shard_name(number, self.shape.format, failed=True))
        self.folder.remove(_tries_name(number))


def _tries_name(number: int) -> str:
    return f"{SHARDS}/{number:06}.tries"
