"""PLL with the rest of the word hidden: Σ_t log p(x_t | x without x_t and what follows it in its word).

Kauf & Ivanova (2023): plain PLL overrates words of several pieces, because a piece is easy to guess from its
neighbours. Hiding the piece and those to its right in the same word mends that and keeps everything else. What a word
is depends on the word policy, which the score reports. Not a probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import Bools, Ints
from besag.scores.passage import Parts, Passage, ScorePlan
from besag.scores.registry import Method, register


@register
@dataclass(frozen=True)
class WordLeftToRight(Method):
    name = "word_l2r"
    title = "PLL that hides the rest of the word too (better for words of several pieces)"
    formula = "Σ_t log p(x_t | x_∖{s ≥ t in the word of t})"
    passes = "n"
    cite = ("kauf2023",)
    aliases = ("within_word_l2r", "pll_word_l2r")

    def cost(self, n: int, length: int) -> int:
        return n * length

    def plan(self, passage: Passage) -> ScorePlan:
        words, everywhere = passage.words, np.arange(passage.size)  # (B, n), (n,)

        def rest_of_word(index: Ints) -> Bools:  # (B, b, n)
            return np.asarray((words[:, index, None] == words[:, None]) & (everywhere >= index[:, None]))

        return Parts.of((yield from passage.ask_each(rest_of_word)))
