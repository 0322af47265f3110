"""Batches of pairs: which are in which, and how a target comes to its source.

A pair takes as much room in a batch as its longer side, so that neither sources nor targets, each padded to its own
longest, are more than `data.batch_tokens`. Pairs with a side that is longer than `data.max_length` are left out, and
that is told: a target without its end would teach where to stop wrongly. Knows pairs as documents of two caches.
"""

from __future__ import annotations

import warnings

import numpy as np

from besag.arrays import Ints
from besag.errors import BesagError
from besag.masks import Masking
from besag.masks.passages import Passages
from besag.training.data.assembly import Parts
from besag.training.data.batch_plan import BatchPlan, Planned
from besag.training.data.clock import Clock
from besag.training.data.loader import BatchDataset
from besag.training.data.parallel import Parallel
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary


class PairPlan(BatchPlan):
    """The passages are the targets; every one of them is whole."""

    def __init__(self, text: Parallel, data: Data, *, special: int, seed: int) -> None:
        self.text = text
        super().__init__(text.target, data, special=special, seed=seed, unpadded=False)
        fits = text.fitting(self.room)
        self._kept: Ints = np.flatnonzero(fits)
        if not len(self._kept):
            raise BesagError(
                f"of all {len(fits):,} pairs each has a side of more than data.max_length = {data.max_length} tokens."
            )
        if len(self._kept) < len(fits):
            warnings.warn(
                f"{len(fits) - len(self._kept):,} of {len(fits):,} pairs have a side of more than data.max_length = "
                f"{data.max_length} tokens and are left out",
                stacklevel=2,
            )

    def sources(self, planned: Planned) -> tuple[Ints, Ints]:
        """(R,), (R,) where the sources of a batch begin, and how long they are."""
        bounds = self.text.source.documents
        pair = self._pairs(planned.start)
        return bounds[pair], bounds[pair + 1] - bounds[pair]

    def _pairs(self, start: Ints) -> Ints:
        """(R,) the numbers of the pairs whose targets begin at these tokens."""
        return np.searchsorted(self.text.target.documents, start)

    def _passages(self, number: int) -> tuple[Ints, Ints]:
        bounds = self.text.target.documents
        return bounds[self._kept], bounds[self._kept + 1] - bounds[self._kept]

    def _sizes(self, start: Ints, length: Ints) -> Ints:
        bounds = self.text.source.documents
        pair = self._pairs(start)
        longer: Ints = np.maximum(length.astype(np.int64), bounds[pair + 1] - bounds[pair])
        return longer

    def _also(self) -> list[object]:
        return [self.text.source.meta["arrays"]["documents"]["sha256"]]


class PairBatches(BatchDataset):
    """Batch `index` of the run, each target with its source."""

    plan: PairPlan

    def __init__(self, plan: PairPlan, vocabulary: Vocabulary, masking: Masking, clock: Clock, *, seed: int) -> None:
        super().__init__(plan, vocabulary, masking, clock, seed=seed)

    def parts(self, index: int) -> Parts:
        return super().parts(index)._replace(source=self._source(index))

    def _source(self, index: int) -> Passages:
        planned = self.plan.batch(index)
        cache, (start, length) = self.plan.text.source, self.plan.sources(planned)
        return self.maker.template.passages(cache.tokens, cache.marks, start, length, planned.draw)
