"""Important terms more often (retrieval-oriented masking, ROM): a chance proportional to the importance of the term.

Importance is given (`weights`: a file of lines token<TAB>weight; tokens without a line get the mean), or found in the
corpus as idf(v) = log((D + 1) / (d(v) + ½)), with D documents of which d(v) hold v. Stop words, the `stop_words` most
frequent tokens, and tokens without a letter or digit get `least` of the mean weight: rarely hidden, but not never.
Units are whole words (the mean weight of their tokens), or tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np

from besag.arrays import Bools, Floats
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
from besag.masks.units import budget, take
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class Importance(MaskLaw):
    name: ClassVar[str] = "importance"
    title: ClassVar[str] = "important terms, more often (ROM)"
    cite: ClassVar[tuple[str, ...]] = ("long2022",)
    aliases: ClassVar[tuple[str, ...]] = ("rom",)
    _weight: ClassVar[Floats | None] = None  # (V,)
    _share: ClassVar[Floats | None] = None  # (V,)

    weights: Annotated[str | None, "a file token<TAB>weight; if none, idf"] = None
    stop_words: Annotated[int, "how many of the most frequent tokens are stop words"] = 100
    least: Annotated[float, "weight of stop words, as a share of the mean weight"] = 0.1
    unit: Annotated[Literal["word", "token"], "what is hidden whole"] = "word"

    def __post_init__(self) -> None:
        refuse_unless(self.stop_words >= 0, self, "stop_words", "0 or more")
        refuse_unless(0 < self.least <= 1, self, "least", "above 0 and at most 1")

    def prepare(self, statistics: Statistics) -> Self:
        share = shares(statistics)
        if self.weights is not None:
            weight = given_weights(self.weights, statistics)
        else:
            weight = idf(statistics)
            plain = weight.copy()
            plain[np.argsort(-share, kind="stable")[: self.stop_words]] = 0
            plain[[not any(map(str.isalnum, token)) for token in statistics.tokens]] = 0
            mean = float(share @ plain) / max(float(share[plain > 0].sum()), 1e-12)
            weight = np.where(plain > 0, weight, self.least * mean) if mean > 0 else np.ones_like(weight)
        return carrying(self, _weight=weight, _share=share)

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        limit = budget(passages, rate, seed)
        unit = passages.word if self.unit == "word" else passages.place
        turn = proportional(passages, unit, needed(self._weight, self)[passages.ids], limit, seed, Training.IMPORTANCE)
        return take(passages, unit, turn, limit)

    def tilt(self, rate: float = 0.15) -> Floats:
        """log π; exact in long passages for tokens, and for words of one token."""
        return proportional_tilt(needed(self._weight, self), needed(self._share, self), rate)


def idf(statistics: Statistics) -> Floats:
    """(V,) log((D + 1) / (d(v) + ½)), above 0."""
    holds, documents = np.zeros(len(statistics.counts), dtype=np.int64), 0
    for document in statistics.documents:
        holds[np.unique(document)] += 1
        documents += 1
    found: Floats = np.log((documents + 1) / (holds + 0.5))
    return found
