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
from besag.engine import Engine
from besag.samplers.kernel import Canvas, Info, Kernel, Noise, State, changes, hidden, register
from besag.samplers.kernels.decoding import (
    SEARCH,
    Pick,
    drawing,
    fill,
    foremost,
    hidden_at_first,
    refuse_nothing_hidden,
)


@register
@dataclass(frozen=True)
class GIpd(Kernel):
    name = "g_ipd"
    title = "fixed groups of places one after the other, each in a few passes"
    formula = "x_i ~ p(x_i | groups before, what of its own is shown) for the ⌈m/T⌉ surest i of group r mod N"
    law = "the chain rule over passes, a product within each; the joint only where a pass draws one place"
    passes = "at most N · T for n hidden places, 1 a step"
    ends = True
    cite = ("jeong2024",)

    groups: Annotated[int, "N: every N-th hidden place is of one group"] = 4
    rounds: Annotated[int, "T: passes of a group"] = 1
    pick: Annotated[Pick, "draw tokens, or take the likeliest"] = "sample"
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    @property
    def effective_law(self) -> str:
        return SEARCH if self.pick == "argmax" else self.law

    def __post_init__(self) -> None:
        whole_number(self.groups, "groups", right="there is at least 1 group", most=MOST_PLACES)
        whole_number(self.rounds, "rounds", right="a group takes at least 1 pass", most=MOST_PLACES)
        drawing(self.pick, self.temperature, self.top_k, self.top_p)

    def check(self, canvas: Canvas) -> None:
        refuse_nothing_hidden(canvas)

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        hides = hidden(state)  # (C, L)
        group = self._groups(state.canvas).to(hides.device)
        now = group.masked_fill(~hides, self.groups).amin(1, keepdim=True)  # (C, 1) the first that is not finished
        inside = hides & (group == now)
        size = -(-(group == now).sum(1) // self.rounds)  # (C,)
        how = drawing(self.pick, self.temperature, self.top_k, self.top_p)
        answers = fill(engine, noise, state, state.ids, inside, self.pick, how, measure="confidence")
        assert answers.turn is not None
        chosen = foremost(answers.turn, inside, size)
        ids = torch.where(chosen, answers.token, state.ids)
        more = {"log_prob": answers.log_prob.masked_fill(~chosen, 0).sum(1)}
        return State(ids, state.canvas, state.step + 1), Info(changes(state.ids, ids), answers.passes, more)

    def steps(self, canvas: Canvas) -> int:
        group = self._groups(canvas)
        size = torch.stack([(group == number).sum(1) for number in range(int(group.max()) + 1)])  # (N, C)
        each = -(-size // self.rounds)
        return int((-(-size // each.clamp(min=1))).sum(0).max())

    def _groups(self, canvas: Canvas) -> Tensor:
        """(C, L) on the host: the group of each place that was hidden at first; −1 elsewhere."""
        first = hidden_at_first(canvas)
        return torch.where(first, (first.long().cumsum(1) - 1) % self.groups, -1)
