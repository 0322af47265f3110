"""Which passages are in which batch: the order of a whole run, as a function of (seed, epoch).

Nothing is remembered but what can be worked out again, so any batch can be had at any time, by any process, and a
resumed run goes on in the middle of an epoch. Every passage is seen once an epoch. The draw of a passage, the counter
of all its noise, is its running number over the whole run.

    unpadded   the next passages until the batch is full: at most `batch_tokens` tokens
    bucketed   passages of similar length together: sorted within pools of `POOL` batches, cut so that rows × longest is
               at most `batch_tokens`, and the batches shuffled

Knows lengths and numbers; knows no masks and no tensors.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from besag import noise
from besag.arrays import Floats, Ints
from besag.errors import BesagError
from besag.files.whole import write_whole
from besag.noise import Training
from besag.training.data import cuts
from besag.training.data.cache import Cache
from besag.training.recipe import Data

VERSION = 1  # of the order: another number, another order
POOL = 64  # batches whose passages are sorted together
MANY = 50_000  # passages: planning as many takes long enough to begin before it is needed


class Planned(NamedTuple):
    """The passages of one batch, in order."""

    start: Ints  # (R,) in the tokens of the cache
    length: Ints  # (R,) without special tokens
    draw: Ints  # (R,)


class Epoch(NamedTuple):
    start: Ints  # (P,) in the order of the epoch
    length: Ints  # (P,)
    batches: Ints  # (B + 1,) batch b is passages batches[b] … batches[b+1]−1
    tokens: Ints  # (B + 1,) of all batches before, special tokens counted


class Count(NamedTuple):
    batches: int
    passages: int
    tokens: int


class BatchPlan:
    """`special` tokens stand around each passage; `copies` of it are in a batch, which takes room from others."""

    def __init__(self, cache: Cache, data: Data, *, special: int, seed: int, unpadded: bool, copies: int = 1) -> None:
        self.cache, self.data, self.special, self.seed = cache, data, special, seed
        self.unpadded, self.copies = unpadded, copies
        self.room = data.max_length - special
        self.budget = data.batch_tokens // copies
        if self.room < 1:
            raise BesagError(
                f"data.max_length = {data.max_length} leaves no room for text beside {special} special tokens."
            )
        if self.budget < data.max_length:
            times = f" × masking.copies = {copies}" if copies > 1 else ""
            raise BesagError(
                f"data.batch_tokens = {data.batch_tokens} does not hold one passage of data.max_length = "
                f"{data.max_length}{times}: give it at least {data.max_length * copies}."
            )
        self._counts: list[Count] = []
        self._rows: int | None = None
        self._epochs: dict[int, Epoch] = {}
        self._ahead: _Ahead | None = None
        self._recall()

    def __getstate__(self) -> dict[str, Any]:
        """Another process plans anew: that is quicker than sending."""
        left_out = ("_pieces", "_memo")
        kept = {name: value for name, value in self.__dict__.items() if name not in left_out}
        return {**kept, "_epochs": {}, "_ahead": None}

    def batch(self, index: int) -> Planned:
        """Batch `index` of the run, counted over all epochs."""
        number, within, before = self._locate(index)
        epoch = self.epoch(number)
        low, high = epoch.batches[within : within + 2].tolist()
        draw = (before.passages + np.arange(low, high)) & 0xFFFFFFFF
        if 2 * within >= len(epoch.batches) and len(epoch.start) > MANY:
            self._look_ahead(number + 1)
        return Planned(epoch.start[low:high], epoch.length[low:high].astype(np.int64), draw)

    def tokens_before(self, index: int) -> int:
        """Tokens in all batches before `index`, special tokens and copies counted."""
        number, within, before = self._locate(index)
        inside = int(self.epoch(number).tokens[within]) if within else 0
        return (before.tokens + inside) * self.copies

    def epoch_of(self, index: int) -> int:
        """The number of the epoch that batch `index` is in."""
        return self._locate(index)[0]

    def where(self, index: int) -> float:
        """How far batch `index` is, in epochs."""
        number, within, _ = self._locate(index)
        return number + within / self._counts[number].batches

    @property
    def rows(self) -> int:
        """The most passages of any batch (before copies)."""
        if self._rows is None:
            self.epoch(0)
        assert self._rows is not None
        return self._rows

    def epoch(self, number: int) -> Epoch:
        if number not in self._epochs:
            ahead, self._ahead = self._ahead, None
            found = ahead.result(number) if ahead is not None else None
            if found is None:
                found = self._plan(number)
            if number == 0:
                self._rows = self._row_limit(found.length)
            self._epochs = {each: epoch for each, epoch in self._epochs.items() if each == number - 1}
            self._epochs[number] = found
            self._remember(number, Count(len(found.batches) - 1, len(found.start), int(found.tokens[-1])))
        return self._epochs[number]

    def _locate(self, index: int) -> tuple[int, int, Count]:
        """(epoch, batch within it, what all epochs before it hold)."""
        number, before = 0, Count(0, 0, 0)
        while True:
            if number == len(self._counts):
                self.epoch(number)
            count = self._counts[number]
            if index < before.batches + count.batches:
                return number, index - before.batches, before
            before = Count(*(a + b for a, b in zip(before, count, strict=True)))
            number += 1

    def _look_ahead(self, number: int) -> None:
        """Plan an epoch in the background, so that nobody waits when it begins."""
        ahead = self._ahead
        if number not in self._epochs and (ahead is None or not ahead.is_for(number)):
            self._ahead = _Ahead(self, number)

    @cached_property
    def _pieces(self) -> Ints:
        return cuts.pieces(self.cache.marks, self.cache.documents, self.room)

    def _plan(self, number: int) -> Epoch:
        start, length = self._passages(number)
        order = np.argsort(scattered(self.seed, Training.SHUFFLE, number, len(start)), kind="stable")
        start, length = start[order], length[order].astype(np.int32)
        size = self._sizes(start, length) + self.special
        if self.unpadded:
            rows = self._row_limit(length) if number == 0 else self.rows
            batches = full(size, self.budget, rows)
        else:
            order, batches = bucketed(size, self.budget, self.seed, number)
            start, length = start[order], length[order]
        tokens = np.append(0, np.cumsum(length.astype(np.int64) + self.special))[batches]
        return Epoch(start, length, batches, tokens)

    def _sizes(self, start: Ints, length: Ints) -> Ints:
        """(P,) the room that passages take in a batch, special tokens not counted."""
        return length.astype(np.int64)

    def _passages(self, number: int) -> tuple[Ints, Ints]:
        unit, documents = self.data.unit, self.cache.documents
        if unit == "documents":
            return cuts.even(documents, self.room)
        if unit == "windows":
            return cuts.windows(documents, self.room)
        if unit == "sentences":
            return self._pieces[:-1], np.diff(self._pieces)
        drawn = scattered(self.seed, Training.BATCH_TARGET, number, len(self._pieces) - 1)
        return cuts.segments(self._pieces, documents, cuts.targets(drawn, self.room + self.special, self.special))

    def _row_limit(self, length: Ints) -> int:
        """A quarter more than fit on average: a bound that is hardly ever met, so that shapes can be static."""
        mean = float(length.mean()) + self.special
        return min(int(1.25 * self.budget / mean) + 8, max(self.budget // (self.special + 1), 1))

    @cached_property
    def _memo(self) -> Path:
        """Where the counts of earlier epochs lie, so that a resumed run need not plan them all again."""
        what = [
            VERSION, self.cache.meta["arrays"], self.data.unit, self.data.max_length, self.budget, self.special,
            self.seed, self.unpadded, POOL, *self._also(),
        ]  # fmt: skip
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]
        return self.cache.folder / f"epochs-{key}.json"

    def _also(self) -> list[object]:
        """What else decides the order."""
        return []

    def _recall(self) -> None:
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):  # without it everything is worked out
            said = json.loads(self._memo.read_text(encoding="utf-8"))
            self._counts = [Count(*map(int, each)) for each in said["counts"]]
            self._rows = int(said["rows"])

    def _remember(self, number: int, count: Count) -> None:
        if number < len(self._counts):
            if self._counts[number] != count:
                raise BesagError(f"{str(self._memo)!r} does not fit the cache it lies in: delete it.")
            return
        self._counts.append(count)
        with suppress(OSError, BesagError):
            write_whole(self._memo, json.dumps({"counts": self._counts, "rows": self._rows}))


class _Ahead:
    """An epoch that is being planned by a thread of this process."""

    def __init__(self, plan: BatchPlan, number: int) -> None:
        self.number, self.process = number, os.getpid()
        self.found: Epoch | None = None
        self.thread = threading.Thread(target=self._work, args=(plan,), daemon=True)
        self.thread.start()

    def _work(self, plan: BatchPlan) -> None:
        self.found = plan._plan(self.number)

    def is_for(self, number: int) -> bool:
        return self.number == number and self.process == os.getpid()  # a thread does not live on in a forked process

    def result(self, number: int) -> Epoch | None:
        if not self.is_for(number):
            return None
        self.thread.join()
        return self.found


def scattered(seed: int, stream: int, epoch: int, count: int, first: int = 0) -> Floats:
    """(count,) uniform noise of the numbers from `first` on; made in parts that stay in the processor's cache."""
    numbers = np.arange(first, first + count)
    parts = [noise.uniform(seed, stream, epoch, numbers[low : low + 16384]) for low in range(0, count, 16384)]
    return np.concatenate([np.zeros(0), *parts])


def full(size: Ints, budget: int, rows: int) -> Ints:  # (B + 1,)
    """Bounds of batches of the next passages, as many as fit into `budget` tokens and `rows`."""
    total = np.append(0, np.cumsum(size))
    bounds = [0]
    while (at := bounds[-1]) < len(size):
        bounds.append(min(int(np.searchsorted(total, total[at] + budget, side="right")) - 1, at + rows))
    return np.array(bounds)


def bucketed(size: Ints, budget: int, seed: int, epoch: int) -> tuple[Ints, Ints]:  # (P,), (B + 1,)
    """The order and the bounds of batches with rows × longest ≤ budget, of passages of similar length."""
    pool = (np.cumsum(size) - size) // (POOL * budget)
    order = np.lexsort((-size, pool))
    ends = np.searchsorted(pool, np.arange(pool[-1] + 1), side="right").tolist()
    longest = size[order]
    bounds = [0]
    for end in ends:
        while (at := bounds[-1]) < end:
            bounds.append(min(at + budget // int(longest[at]), end))
    count = np.diff(bounds)
    turn = np.argsort(scattered(seed, Training.BATCHES, epoch, len(count)), kind="stable")
    owner = np.repeat(np.arange(len(count)), count[turn])
    places = np.arange(len(size)) - (np.cumsum(count[turn]) - count[turn])[owner] + np.array(bounds)[turn][owner]
    return order[places], np.append(0, np.cumsum(count[turn]))
