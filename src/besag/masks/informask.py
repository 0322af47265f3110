"""Informative tokens more often (InforMask; Sadeq, Xu and McAuley 2022), in its efficient form: one chance a token.

A token is informative where its pointwise mutual information with its neighbours is large. Over the corpus, with
n(u, v) the count of u within `window` places of v (in the same document) and n(v) the count of v,

    I(v) = Σ_u n(u, v) · PMI(u, v) / n(v),   PMI(u, v) = log [ n(u, v) n(·, ·) / (n(u, ·) n(·, v)) ],

is the mean, over all places where v stands, of the summed PMI with its neighbours: what v tells of them. Each PMI is
shrunk by n(u,v)/(n(u,v)+1) · m/(m+1), m = min(n(u), n(v)) (Pantel and Lin 2002), or else whatever occurs once would be
the most informative of all. Chances are proportional to max(I(v), least · mean I). The publication scores the masks of
a sentence and counts how often each token is in the best of several; the proportional map is ours. A published table
can be given as it is: `table`, a file of lines token<TAB>chance; tokens without a line get the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from besag.arrays import Bools, Floats
from besag.masks.corpus import chunks
from besag.masks.counting import CAPACITY, Counts
from besag.masks.law import LAWS, MaskLaw, Statistics
from besag.masks.passages import Passages
from besag.masks.tables import (
    carrying,
    given_weights,
    needed,
    proportional,
    proportional_tilt,
    refuse_unless,
    shares,
)
from besag.masks.units import budget, take_tokens
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class InforMask(MaskLaw):
    name: ClassVar[str] = "informask"
    title: ClassVar[str] = "informative tokens, more often (InforMask)"
    cite: ClassVar[tuple[str, ...]] = ("sadeq2022",)
    _weight: ClassVar[Floats | None] = None  # (V,)
    _share: ClassVar[Floats | None] = None  # (V,)

    table: Annotated[str | None, "a file token<TAB>chance; if none, from the corpus"] = None
    window: Annotated[int, "places on either side"] = 5
    sample: Annotated[int, "tokens of the corpus that are read"] = 10_000_000
    least: Annotated[float, "least weight, as a share of the mean weight"] = 0.1

    def __post_init__(self) -> None:
        refuse_unless(1 <= self.window <= 1000, self, "window", "1 to 1000 places")
        refuse_unless(self.sample >= 1, self, "sample", "1 token or more")
        refuse_unless(0 < self.least <= 1, self, "least", "above 0 and at most 1")

    def prepare(self, statistics: Statistics) -> Self:
        share = shares(statistics)
        if self.table is None:
            weight = informativeness(statistics, self.window, self.sample)
        else:
            weight = given_weights(self.table, statistics)
        mean = float(share @ np.maximum(weight, 0))
        weight = np.maximum(weight, self.least * mean) if mean > 0 else np.ones_like(weight)
        return carrying(self, _weight=weight, _share=share)

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        limit = budget(passages, rate, seed)
        weight = needed(self._weight, self)[passages.ids]
        turn = proportional(passages, passages.place, weight, limit, seed, Training.INFORMASK)
        return take_tokens(passages, turn, limit)

    def tilt(self, rate: float = 0.15) -> Floats:
        return proportional_tilt(needed(self._weight, self), needed(self._share, self), rate)


def informativeness(
    statistics: Statistics, window: int = 5, sample: int = 10_000_000, capacity: int = CAPACITY
) -> Floats:
    """(V,) I(v) as above, from the documents that hold the first `sample` tokens; 0 for tokens not among them."""
    width = len(statistics.counts)
    pairs, places = Counts(capacity), np.zeros(width, dtype=np.int64)
    for ids in chunks(statistics.documents, statistics.special):  # (C,) −1 at the end of each document
        places += np.bincount(ids[ids >= 0], minlength=width)
        ends = np.cumsum(ids < 0)
        for distance in range(1, window + 1):
            left, right = ids[:-distance], ids[distance:]
            both = (left >= 0) & (right >= 0) & (ends[:-distance] == ends[distance:])
            left, right = left[both], right[both]
            pairs.add(np.minimum(left, right) * width + np.maximum(left, right))
        if places.sum() >= sample:
            break
    keys, count = pairs.above(0)
    lower, upper = keys // width, keys % width
    mixed = lower != upper  # a pair is seen from both sides, and so is a token beside its like
    one, other = np.append(lower, upper[mixed]), np.append(upper, lower[mixed])
    count = np.append(np.where(mixed, count, 2 * count), count[mixed])
    total = np.bincount(one, weights=count, minlength=width)  # (V,); the same for both sides
    pmi = np.log(count) + np.log(max(float(count.sum()), 1.0)) - np.log(total[one]) - np.log(total[other])
    rarer = np.minimum(places[one], places[other])
    shrunk = pmi * count / (count + 1) * rarer / (rarer + 1)
    told: Floats = np.bincount(one, weights=count * shrunk, minlength=width) / np.maximum(places, 1)
    return told
