"""The chain rule over the two places, in either order or mixed.

    a→b:  q(x, y) = p_ab(x)·B(y|x)        b→a:  q(x, y) = p_ab(y)·A(x|y)        both:  (1 − weight)·(b→a) + weight·(a→b)

p_ab is the model's answer with both places hidden. Each order is a joint of its own; where they differ, the
conditionals are incompatible (with the two-mask answer or with each other).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from besag.errors import BesagError
from besag.joints import passes
from besag.joints.law import JointLaw
from besag.joints.registry import CONSTRUCTIONS, Built, Construction
from besag.joints.unaries import Unaries


@CONSTRUCTIONS.register
@dataclass(frozen=True)
class Order(Construction):
    name = "order"
    title = "chain rule: a then b, b then a, or mixed"
    formula = "½ p_ab(x) B(y|x) + ½ p_ab(y) A(x|y)"
    exact = True
    cite = ("torroba2023", "uria2014")

    direction: Annotated[Literal["both", "ab", "ba"], "a→b, b→a, or their mixture"] = "both"
    weight: Annotated[float, "of a→b in the mixture"] = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.weight < 1:
            raise BesagError(f"weight={self.weight} must lie between 0 and 1; direction='ab' or 'ba' takes one order")

    def build(self, unaries: Unaries) -> Built:
        forth = JointLaw("b", unaries.hidden_a, torch.zeros_like(unaries.hidden_b))
        back = JointLaw("a", torch.zeros_like(unaries.hidden_a), unaries.hidden_b)
        if self.direction == "ab":
            return Built(forth, unaries.hidden_a, passes.marginal_b(unaries, forth))
        if self.direction == "ba":
            return Built(back, passes.marginal_a(unaries, back), unaries.hidden_b)
        log_forth, log_back = math.log(self.weight), math.log(1 - self.weight)
        law = JointLaw("sum", unaries.hidden_a + (log_forth + math.log(2)), unaries.hidden_b + (log_back + math.log(2)))
        of_a, of_b = passes.marginal_a(unaries, back), passes.marginal_b(unaries, forth)
        return Built(
            law,
            torch.logaddexp(unaries.hidden_a + log_forth, of_a + log_back),
            torch.logaddexp(unaries.hidden_b + log_back, of_b + log_forth),
        )
