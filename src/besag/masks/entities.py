"""Given spans first, each as a whole: names, dates, salient spans, whatever `passages.span` numbers.

Spans are taken in random order until the budget is spent; one that does not fit is passed over and left whole. What is
left of the budget goes to tokens or words outside all spans, or is not spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from besag.arrays import Bools, Floats
from besag.masks.law import LAWS, MaskLaw
from besag.masks.passages import Passages
from besag.masks.units import budget, take, uniform_turns


@LAWS.register
@dataclass(frozen=True)
class Entities(MaskLaw):
    name: ClassVar[str] = "entities"
    title: ClassVar[str] = "given spans first, each as a whole: names, dates, salient spans"
    cite: ClassVar[tuple[str, ...]] = ("guu2020",)
    spanned: ClassVar[bool] = True

    rest: Annotated[Literal["uniform", "whole_word", "none"], "where the rest of the budget goes"] = "uniform"

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        inside = passages.span >= 0
        others = {
            "uniform": passages.place,
            "whole_word": passages.word,
            "none": np.full(len(inside), -1),
        }[self.rest]
        beyond = int(passages.span.max(initial=-1)) + 1  # the numbers of spans and of other units must not meet
        unit = np.where(inside, passages.span, np.where(others < 0, -1, others + beyond))
        turn = uniform_turns(passages, seed) + ~inside  # spans before 1, everything else after
        return take(passages, unit, turn, budget(passages, rate, seed))
