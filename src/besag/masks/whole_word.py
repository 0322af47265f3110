"""All tokens of a word, or none: words with equal chances, until the budget is spent.

What a word is comes with the passage, from the tokenizer's own splitting of the text and never from the way its tokens
or offsets look. A word larger than what is left of the budget is passed over; so in a passage with a budget of b
tokens, a word of more than b tokens is never hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from besag.arrays import Bools, Floats
from besag.masks.law import LAWS, MaskLaw
from besag.masks.passages import Passages
from besag.masks.units import budget, take, uniform_turns


@LAWS.register
@dataclass(frozen=True)
class WholeWord(MaskLaw):
    name: ClassVar[str] = "whole_word"
    title: ClassVar[str] = "all tokens of a word, or none"
    cite: ClassVar[tuple[str, ...]] = ("devlin2019",)

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        return take(passages, passages.word, uniform_turns(passages, seed), budget(passages, rate, seed))
