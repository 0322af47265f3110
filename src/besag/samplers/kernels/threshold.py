"""Confidence threshold: in one pass, all hidden places that the model is sure enough of.

    c_i = max_v p(x_i = v | what is shown)          how sure the model is of a hidden place
    S   = {i : c_i ≥ least}, or the surest place alone where there is none
    x_i ~ p(x_i | what is shown)     for all i ∈ S, independently

The fewer places are open, the fewer passes: a sentence that is certain takes one, and no sentence more than it has
places. If k places go together, each with c_i > 1 − 1/(k + 1), their likeliest tokens are also the likeliest of their
joint: together they have 1 − k/(k + 1) at least, and whatever differs somewhere less. Below, nothing is promised.
With `least=1` it is `ordered` by confidence, but for places that are certain.

Not to be confused with `entropy_bound`, which bounds what a set loses together, not each place for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from besag.errors import BesagError, quoted
from besag.samplers.kernel import State, register
from besag.samplers.kernels.decoding import Chooser, foremost


@register
@dataclass(frozen=True)
class Threshold(Chooser):
    name = "threshold"
    title = "all hidden places at a time that the model is sure enough of"
    formula = "x_i ~ p(x_i | all that is shown) for all i ∈ S, S = {i : max_v p(x_i = v | shown) ≥ least}"
    law = "the joint, if the conditionals have one, but for the total correlation of its sets, 0 for sets of one"
    passes = "1 a step, at most n for n hidden places"
    ends = True
    cite = ("wu2025",)
    measure = "confidence"

    least: Annotated[float, "how probable the likeliest token of a place must be"] = 0.9

    def __post_init__(self) -> None:
        if not 0 <= self.least <= 1:
            raise BesagError(f"least={quoted(self.least)}: a probability from 0 (all at once) to 1 (one by one)")
        super().__post_init__()

    def choose(self, state: State, asked: Tensor, turn: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        sure = (-turn).exp() >= self.least  # a turn is −log c_i
        return (asked & sure) | foremost(turn, asked, 1), {}
