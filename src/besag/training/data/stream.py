"""Batches of text that is read on while training: no cache, any amount of text, standard input too.

Passages wait in a buffer of `BUFFER` batches. When it is full its order is drawn anew, half of its batches are handed
out, and reading goes on: text is mixed over the reach of the buffer, not over the whole. Files are read again when they
end; standard input ends the run. The order is a function of the text and the seed, so a resumed run reads up to where
it stopped and goes on from there: exact, but not free.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from torch.utils.data import IterableDataset

from besag.arrays import Ints
from besag.errors import BesagError
from besag.masks import Masking
from besag.masks.passages import Passages
from besag.noise import Training
from besag.training.data import cuts
from besag.training.data.assembly import Maker, Parts, Template
from besag.training.data.batch_plan import bucketed, full, scattered
from besag.training.data.clock import Clock, indices
from besag.training.data.rows import version
from besag.training.data.sources import STDIN, documents
from besag.training.data.tokens import Tokens, tokenised
from besag.training.network.batch import Batch
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary

BUFFER = 64  # batches
SHORT = 8  # tokens: a batch has room for as many passages as if all were at least so long


class _Waiting(NamedTuple):
    """Passages that were read and not yet handed out."""

    tokens: np.ndarray  # (N,)
    marks: np.ndarray  # (N,)
    start: Ints  # (P,)
    length: Ints  # (P,)


class StreamBatches(IterableDataset[Batch | Parts]):
    """The batches that `order` names, as they come."""

    def __init__(
        self,
        data: Data,
        vocabulary: Vocabulary,
        masking: Masking,
        clock: Clock,
        *,
        seed: int,
        unpadded: bool,
        copies: int = 1,
        static: bool = False,
    ) -> None:
        self.data, self.vocabulary, self.clock, self.seed, self.unpadded = data, vocabulary, clock, seed, unpadded
        self.from_stdin = STDIN in data.train
        self.version = None if data.dataset is None else version(data.dataset, data)  # of what is read
        if self.from_stdin and clock.world > 1:
            raise BesagError("standard input belongs to one process: give several the files they are to read.")
        self.order = indices(0)
        template = Template(vocabulary)
        self.special, self.room = template.size, data.max_length - template.size
        self.budget = data.batch_tokens // copies
        if not 0 < self.room < self.budget - template.size + 1:
            raise BesagError(
                f"data.max_length = {data.max_length} must leave room for text beside {self.special} special tokens, "
                f"and fit {copies} times into data.batch_tokens = {data.batch_tokens}."
            )
        self.rows = max(self.budget // max(SHORT, self.special + 1), 1)
        self.maker = Maker(template, masking, seed=seed, unpadded=unpadded, longest=data.max_length, copies=copies)
        if static and not unpadded:
            raise BesagError("static shapes need unpadded batches.")
        if static:
            self.maker.fix(data.batch_tokens, self.rows)
        self._tokens = 0  # in all batches before the step at hand

    def mask(self, parts: Parts | Batch) -> Batch:
        return parts if isinstance(parts, Batch) else self.maker.mask(parts)

    def tokens_before(self, index: int) -> int:
        """Tokens of all steps before the one at hand, special tokens and copies counted."""
        return self._tokens * self.maker.copies

    def __iter__(self) -> Iterator[Batch | Parts]:
        self._tokens = counted = drawn = 0
        for index, (waiting, chosen) in enumerate(self._batches()):
            if self.clock.opens(index):
                self._tokens = counted
            start, length = waiting.start[chosen], waiting.length[chosen]
            if index in self.order:
                draw = (drawn + np.arange(len(start))) & 0xFFFFFFFF
                passages = self.maker.template.passages(waiting.tokens, waiting.marks, start, length, draw)
                parts = Parts(passages, self.clock.step(index, self), self.clock.progress(index, self))
                yield parts if self.maker.adaptive else self.maker.mask(parts)
            counted += int(length.sum()) + self.special * len(length)
            drawn += len(start)

    def clean(self, count: int) -> Iterator[Passages]:
        """The passages of the first `count` batches, nothing hidden."""
        for index, (waiting, chosen) in enumerate(self._batches()):
            if index == count:
                return
            start, length = waiting.start[chosen], waiting.length[chosen]
            yield self.maker.template.passages(waiting.tokens, waiting.marks, start, length, np.arange(len(start)))

    def _batches(self) -> Iterator[tuple[_Waiting, Ints]]:
        """What waits, and the numbers of the passages of the next batch among it."""
        waiting: _Waiting | None = None
        filled = 0  # buffers
        pieces = 0  # sentences so far
        while True:
            before = filled
            read, densest = documents(self.data), self.data.densest
            for group in tokenised(read, self.vocabulary, alone=self._alone, densest=densest, processes=1):
                new, count = self._cut(group, pieces)
                pieces += count
                waiting = _joined(waiting, new)
                if waiting.length.sum() + self.special * len(waiting.length) < BUFFER * self.budget:
                    continue
                batches = self._order(waiting, filled)
                handed = max(len(batches) // 2, 1)
                yield from ((waiting, chosen) for chosen in batches[:handed])
                rest = np.sort(np.concatenate([np.zeros(0, np.int64), *batches[handed:]]))
                waiting, filled = _kept(waiting, rest), filled + 1
            if waiting is not None and (self.from_stdin or filled == before):  # less text than the buffer holds
                yield from ((waiting, chosen) for chosen in self._order(waiting, filled))
                waiting, filled = None, filled + 1
            if self.from_stdin:
                return

    @property
    def _alone(self) -> bool:
        return self.data.unit == "sentences"

    def _cut(self, text: Tokens, before: int) -> tuple[_Waiting, int]:
        """The passages of a group of documents, and how many sentences it has."""
        if self.data.unit in ("documents", "windows"):
            cut = cuts.even if self.data.unit == "documents" else cuts.windows
            return _Waiting(text.tokens, text.marks, *cut(text.documents, self.room)), 0
        bounds = cuts.pieces(text.marks, text.documents, self.room)
        count = len(bounds) - 1
        if self._alone:
            return _Waiting(text.tokens, text.marks, bounds[:-1], np.diff(bounds)), count
        drawn = scattered(self.seed, Training.STREAM_TARGET, 0, count, before)
        target = cuts.targets(drawn, self.data.max_length, self.special)
        return _Waiting(text.tokens, text.marks, *cuts.segments(bounds, text.documents, target)), count

    def _order(self, waiting: _Waiting, number: int) -> list[Ints]:
        """All that waits as batches, in an order drawn for the buffer of this number."""
        order = np.argsort(scattered(self.seed, Training.STREAM_ORDER, number, len(waiting.start)), kind="stable")
        size = waiting.length[order] + self.special
        if self.unpadded:
            bounds = full(size, self.budget, self.rows)
        else:
            within, bounds = bucketed(size, self.budget, self.seed, number)
            order = order[within]
        return np.split(order, bounds[1:-1])


def _joined(waiting: _Waiting | None, new: _Waiting) -> _Waiting:
    if waiting is None:
        return new
    return _Waiting(
        np.append(waiting.tokens, new.tokens),
        np.append(waiting.marks, new.marks),
        np.append(waiting.start, new.start + len(waiting.tokens)),
        np.append(waiting.length, new.length),
    )


def _kept(waiting: _Waiting, rest: Ints) -> _Waiting:
    """These passages alone, their tokens moved together."""
    start, length = waiting.start[rest], waiting.length[rest]
    first = np.cumsum(length) - length
    place = np.arange(int(length.sum())) + np.repeat(start - first, length)
    return _Waiting(waiting.tokens[place], waiting.marks[place], first, length)
