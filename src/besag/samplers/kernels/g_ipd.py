"""Group iterative parallel decoding (G-IPD; Jeong et al. 2024): fixed groups one after the other, in a few passes each.

    the hidden places i_0 < i_1 < … fall into N groups:  G_g = { i_r : r mod N = g }          neighbours in other groups
    x_{G_0}, then x_{G_1} given x_{G_0}, …;   a group of m places in T passes, ⌈m / T⌉ places each, the surest first

Places of one pass are drawn independently of each other, so what they say of each other is lost; places of one group
stand N apart, where that is least. With T = 1 the law is exact and simple: the chain rule over groups, a product within
each, and KL(p ‖ law) is the sum of the conditional total correlations of the groups. With as many groups as places it
is `ordered` from left to right. A network trained by the objective `group_mask` with the same N has seen just these
questions: groups before the current one shown, those behind it hidden.

Not to be confused with `grouped`, whose groups are whatever the model is surest of next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from besag.checks import MOST_PLACES, whole_number
from besag.samplers.kernel import Canvas, State, hidden, made, register
from besag.samplers.kernels.decoding import Chooser, foremost, hidden_at_first


@register
@dataclass(frozen=True)
class GIpd(Chooser):
    name = "g_ipd"
    title = "fixed groups of places one after the other, each in a few passes"
    formula = "x_i ~ p(x_i | groups before, what of its own is shown) for the ⌈m/T⌉ surest i of group r mod N"
    law = "the chain rule over passes, a product within each; the joint only where a pass draws one place"
    passes = "at most N · T for n hidden places, 1 a step"
    ends = True
    cite = ("jeong2024",)
    measure = "confidence"

    groups: Annotated[int, "N: every N-th hidden place is of one group"] = 4
    rounds: Annotated[int, "T: passes of a group"] = 1

    def __post_init__(self) -> None:
        whole_number(self.groups, "groups", right="there is at least 1 group", most=MOST_PLACES)
        whole_number(self.rounds, "rounds", right="a group takes at least 1 pass", most=MOST_PLACES)
        super().__post_init__()

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        sizes = [(n - first - 1) // self.groups + 1 for first in range(min(self.groups, n))]
        passes = sum(-(-size // -(-size // self.rounds)) for size in sizes)
        return made(passes, steps) * (length + source)

    def asked(self, state: State) -> Tensor:
        return hidden(state) & self._current(state)

    def choose(self, state: State, asked: Tensor, turn: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        size = -(-self._current(state).sum(1) // self.rounds)  # (C,)
        return foremost(turn, asked, size), {}

    def steps(self, canvas: Canvas) -> int:
        group = self._groups(canvas)
        size = torch.stack([(group == number).sum(1) for number in range(int(group.max()) + 1)])  # (N, C)
        each = -(-size // self.rounds)
        return int((-(-size // each.clamp(min=1))).sum(0).max())

    def _current(self, state: State) -> Tensor:
        """(C, L) the first group that is not finished, what is revealed of it as well."""
        hides = hidden(state)
        group = self._groups(state.canvas).to(hides.device)
        return group == group.masked_fill(~hides, self.groups).amin(1, keepdim=True)

    def _groups(self, canvas: Canvas) -> Tensor:
        """(C, L) on the host: the group of each place that was hidden at first; −1 elsewhere."""
        first = hidden_at_first(canvas)
        return torch.where(first, (first.long().cumsum(1) - 1) % self.groups, -1)
