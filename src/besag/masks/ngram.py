"""Runs of a few whole words: ALBERT's n-grams, P(n) ∝ 1/n for 1 ≤ n ≤ longest.

Words come in random order; one that is not hidden yet begins an n-gram, until the budget is spent. It is `span` at
words with another law of lengths: short runs, and never long ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from besag.arrays import Bools, Floats
from besag.errors import BesagError, quoted
from besag.masks.law import LAWS, MaskLaw
from besag.masks.passages import Passages
from besag.masks.span import LONGEST, hide_runs
from besag.masks.units import budget


@LAWS.register
@dataclass(frozen=True)
class NGram(MaskLaw):
    name: ClassVar[str] = "ngram"
    title: ClassVar[str] = "runs of a few whole words (ALBERT's n-grams)"
    cite: ClassVar[tuple[str, ...]] = ("lan2020",)

    longest: Annotated[int, "words of the longest run"] = 3

    def __post_init__(self) -> None:
        if not 1 <= self.longest <= LONGEST:
            raise BesagError(f"longest is {quoted(self.longest)}: an n-gram has 1 to {LONGEST} words.")

    def lengths(self) -> Floats:
        """(longest,) the chance of each n."""
        weight = 1 / np.arange(1, self.longest + 1)
        chances: Floats = weight / weight.sum()
        return chances

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        return hide_runs(passages, passages.word, self.lengths(), budget(passages, rate, seed), seed)
