"""Group masks: tokens of one group, given the groups before it, while those behind it are hidden (G-MLM; Jeong et al.
2024).

    token r of a text is of group r mod N;   g uniform over the groups
    groups before g are shown, groups behind g hidden;   of the m tokens of g ⌈m cos(πu/2)⌉ are hidden, u uniform
    loss = −Σ log p(x_i | what is shown) over the hidden i of group g

What is asked in training is what the kernel `g_ipd` asks: within a group by the share that is still hidden, across
groups by what was decoded before. Tokens behind the group are hidden and not asked. `masks` is False.
"""

from __future__ import annotations

from math import pi
from typing import Annotated

import torch
from torch import Tensor

from besag.checks import whole_number
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.mdlm import lowest, per_token, predictions, sizes
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective


@OBJECTIVES.register
class GroupMask(Objective):
    name = "group_mask"
    title = "tokens of one group, given the groups before it (G-MLM)"
    cite = ("jeong2024",)
    masks = False

    def __init__(
        self, encoder: Encoder, *, seed: int = 0, groups: Annotated[int, "N: every N-th token is of one group"] = 4
    ) -> None:
        super().__init__(encoder, seed=seed)
        self.groups = whole_number(groups, "groups of the objective 'group_mask'", most=10_000)

    def forward(self, batch: Batch) -> Loss:
        hidden, asked = self.masked(batch)
        target = batch.ids[asked]
        states = self.encoder.states(batch.ids.masked_fill(hidden, self.encoder.mask_id), batch.layout)
        logits = self.encoder.logits(states[asked])
        losses = self.encoder.nll(logits, target)
        total = per_token(losses.sum(), batch, len(target))
        return Loss(total, {}, predictions(self.encoder, target, losses, logits))

    def masked(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(T,) bool each: what is hidden, and what of it is asked."""
        layout, row = batch.layout, batch.layout.row
        size = sizes(batch.free, layout)  # (R,)
        before = batch.free.long().cumsum(0) - 1
        rank = before - (size.cumsum(0) - size)[row]  # (T,) of a free token among those of its text
        group = rank % self.groups
        some = size.clamp(min=1, max=self.groups)  # a short text has fewer groups
        now = (draws.uniform(self.seed, Training.GROUP, batch.draw) * some).long()[row]  # (T,)
        own = batch.free & (group == now)
        share = torch.cos(draws.uniform(self.seed, Training.GROUP_SHARE, batch.draw) * (pi / 2))  # (R,)
        noise = draws.uniform(self.seed, Training.GROUP_HIDE, batch.draw[row], layout.column)
        asked = lowest(noise, own, layout, (share * sizes(own, layout)).ceil().clamp(min=1))
        return asked | (batch.free & (group > now)), asked
