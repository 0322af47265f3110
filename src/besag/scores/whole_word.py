"""PLL with the whole word hidden: Σ_t log p(x_t | x without the word of t). Pieces of one word share one pass.

The pieces of a word are scored as if independent given the rest, so long words are underrated (Kauf & Ivanova 2023).
Not a probability.
"""

from __future__ import annotations

from dataclasses import dataclass

from besag.scores.passage import Parts, Passage, ScorePlan
from besag.scores.registry import Method, register


@register
@dataclass(frozen=True)
class WholeWord(Method):
    name = "whole_word"
    title = "PLL that hides whole words"
    formula = "Σ_t log p(x_t | x_∖word of t)"
    passes = "number of words"
    cite = ("kauf2023",)
    aliases = ("within_word_mlm", "pll_whole_word")

    def cost(self, n: int, length: int) -> int:
        return n * length  # a word has one token at least

    def plan(self, passage: Passage) -> ScorePlan:
        words = passage.words  # (B, n)
        return Parts.of((yield from passage.ask_each(lambda index: words[:, index, None] == words[:, None])))
