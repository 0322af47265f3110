"""Every free token with the same chance: K ~ U{K : |K| = budget}, or each token by itself.

With a budget the number of hidden tokens is rate × size, rounded at random: shapes stay static and no passage goes with
nothing hidden. "up" rounds up: under rates drawn uniformly each number from 1 to n is then as likely as any other
(Mask-Predict). "bernoulli" hides each token by itself with chance `rate`, as BERT's collator and a masked
diffusion do; the number is then binomial, no budget applies, and a short passage may have nothing hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from besag.arrays import Bools, Floats
from besag.masks.law import LAWS, MaskLaw
from besag.masks.passages import Passages
from besag.masks.units import budget, take_tokens, uniform_turns


@LAWS.register
@dataclass(frozen=True)
class Uniform(MaskLaw):
    name: ClassVar[str] = "uniform"
    title: ClassVar[str] = "every token with the same chance"
    cite: ClassVar[tuple[str, ...]] = ("devlin2019",)

    count: Annotated[
        Literal["budget", "up", "bernoulli"], "rate × size rounded at random, or up; or each token by itself"
    ] = "budget"

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        turn = uniform_turns(passages, seed)
        if self.count == "up":
            return take_tokens(passages, turn, np.ceil(rate * passages.sizes).astype(np.int64))
        if self.count == "budget":
            return take_tokens(passages, turn, budget(passages, rate, seed))
        alone: Bools = passages.free & (turn < rate[passages.row])
        return alone
