"""Group iterative decoding: the next few hidden places at a time, all from one pass.

    G_k = the next `size` places of the order, from the tokens shown so far and the model's rows
    x_i ~ p(x_i | what was given, x_{G_1} … x_{G_{k−1}})     for all i ∈ G_k, independently

This is `ordered` with fewer passes, ⌈n / size⌉ for n hidden places, and the price is exact: within a group the product
of the conditionals stands for their joint. If the conditionals are those of a joint law p, then for a fixed order

    KL(p ‖ the law of the kernel) = Σ_k the conditional total correlation of G_k given the groups before it

and for an adaptive order the same in expectation over the groups met. It is zero for `size=1`, which is `ordered` step
by step, and where the places of each group are independent given what is shown; nowhere else. The orders by entropy,
margin and confidence take the surest places together. What is sure can lose little; but on an empty canvas the surest
places are neighbours, which lose more than places taken at random.

The sum of `log_prob` over the steps is log q of the sample under the law q of this kernel (with `order="random"`: given
the groups that were drawn), not under the joint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from besag.checks import MOST_PLACES, whole_number
from besag.samplers.kernel import register
from besag.samplers.kernels.ordered import Order, Revealing


@register
@dataclass(frozen=True)
class Grouped(Revealing):
    name = "grouped"
    title = "a few hidden places at a time, drawn independently of one another"
    formula = "x_i ~ p(x_i | all that is shown) for all i of the next group at once"
    law = "the chain rule over groups, a product within each; the joint only for size=1"
    passes = "⌈n / size⌉ for n hidden places, 1 a step"
    ends = True
    cite = ("li2024",)

    size: Annotated[int, "places of a group"] = 2
    order: Annotated[Order, "which places are next"] = "confidence"

    def __post_init__(self) -> None:
        whole_number(self.size, "size", right="a group has at least 1 place", most=MOST_PLACES)
        super().__post_init__()

    @property
    def together(self) -> int:
        return self.size
