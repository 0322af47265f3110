"""Batches of pairs: which are in which, and how a target comes to its source.

A pair takes as much room in a batch as its longer side, so that neither sources nor targets, each padded to its own
longest, are more than `data.batch_tokens`. Pairs with a side that is longer than `data.max_length` are left out, and
that is told: a target without its end would teach where to stop wrongly. Knows pairs as documents of two caches.
"""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np

from besag.arrays import Bools, Ints
from besag.errors import BesagError
from besag.masks import Masking
from besag.masks.passages import Passages
from besag.training.data.assembly import Parts
from besag.training.data.batch_plan import BatchPlan, Planned
from besag.training.data.cache import Cache
from besag.training.data.clock import Clock
from besag.training.data.loader import BatchDataset
from besag.training.data.parallel import Parallel
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary


class WholePlan(BatchPlan):
    """Every document is one passage, and whole: one that is too long is left out."""

    too_long: ClassVar[str] = "more"  # than data.max_length tokens, in words

    def __init__(self, cache: Cache, data: Data, *, special: int, seed: int, unpadded: bool = False) -> None:
        super().__init__(cache, data, special=special, seed=seed, unpadded=unpadded)
        fits = self._fitting()
        self._kept: Ints = np.flatnonzero(fits)
        long = f"{self.too_long} than data.max_length = {data.max_length} tokens"
        if not len(self._kept):
            raise BesagError(f"of all {len(fits):,} pairs each has {long}.")
        if len(self._kept) < len(fits):
            left_out = len(fits) - len(self._kept)
            warnings.warn(f"{left_out:,} of {len(fits):,} pairs have {long} and are left out", stacklevel=2)

    def _fitting(self) -> Bools:
        """(D,) which documents are short enough."""
        fits: Bools = np.diff(self.cache.documents) <= self.room
        return fits

    def _passages(self, number: int) -> tuple[Ints, Ints]:
        bounds = self.cache.documents
        return bounds[self._kept], bounds[self._kept + 1] - bounds[self._kept]

    def _also(self) -> list[object]:
        return ["whole"]


class PairPlan(WholePlan):
    """The passages are the targets."""

    too_long = "a side of more"

    def __init__(self, text: Parallel, data: Data, *, special: int, seed: int) -> None:
        self.text = text
        super().__init__(text.target, data, special=special, seed=seed)

    def _fitting(self) -> Bools:
        return self.text.fitting(self.room)

    def sources(self, planned: Planned) -> tuple[Ints, Ints]:
        """(R,), (R,) where the sources of a batch begin, and how long they are."""
        bounds = self.text.source.documents
        pair = self._pairs(planned.start)
        return bounds[pair], bounds[pair + 1] - bounds[pair]

    def _pairs(self, start: Ints) -> Ints:
        """(R,) the numbers of the pairs whose targets begin at these tokens."""
        return np.searchsorted(self.text.target.documents, start)

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
