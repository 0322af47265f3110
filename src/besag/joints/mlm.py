"""Independence: each place as the model sees it when both are hidden, q(x, y) = p(x)·p(y).

What every fill-mask pipeline does with two masks. It knows no dependence at all, so "New" and "York" are drawn apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from besag.joints.law import JointLaw
from besag.joints.registry import CONSTRUCTIONS, Built, Construction
from besag.joints.unaries import Unaries


@CONSTRUCTIONS.register
@dataclass(frozen=True)
class Independent(Construction):
    name = "mlm"
    title = "independent, both places hidden"
    formula = "p_ab(x) · p_ab(y)"
    exact = False

    def build(self, unaries: Unaries) -> Built:
        law = JointLaw("independent", unaries.hidden_a, unaries.hidden_b)
        return Built(law, unaries.hidden_a, unaries.hidden_b)
