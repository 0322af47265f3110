"""Masked language modelling with a price on incompatible conditionals.

The conditionals at two places belong to a joint only if both give every 2 × 2 minor the same odds ratio
(`diagnostics/rectangle.py`): with tokens a, a' at place i and b, b' at place j,

    ω_i = [ℓ_i(a|b) − ℓ_i(a'|b)] − [ℓ_i(a|b') − ℓ_i(a'|b')]
    ω_j = [ℓ_j(b|a) − ℓ_j(b'|a)] − [ℓ_j(b|a') − ℓ_j(b'|a')]

and D = ω_i − ω_j must be 0. Normalising constants cancel, so logits ℓ will do. The loss is mlm + weight · h(D), with h
Huber's function (D²/2 up to 1, |D| − 1/2 beyond), averaged over minors.

Where the minors come from, so that they cost little: i and j are two neighbouring hidden places of one passage, with
everything else as the law of masks left it; a, b are the text's own tokens, a', b' are drawn from what the network has
just said there (never a special token). A minor takes four short sequences; `share` of the batch's tokens is spent on
them at most, so a step costs at most 1 + share plain ones.

A network that ignores its neighbours has ω = 0 and is perfectly compatible: look at the dependence ½(|ω_i| + |ω_j|)
beside |D|. Both are logged.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from besag import noise
from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.network.tiles import TILE
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict


class Minors(NamedTuple):
    """P minors: places as indices into the batch's tokens, and the two tokens at each."""

    i: Tensor  # (P,)
    j: Tensor  # (P,)
    a: Tensor  # (P, 2) a, a'
    b: Tensor  # (P, 2) b, b'


@OBJECTIVES.register
class Compatible(Objective):
    name = "compatible"
    title = "masked language modelling with a price on incompatible conditionals"
    cite = ("arnold1989",)

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        weight: Annotated[float, "price of an incompatible minor"] = 0.1,
        share: Annotated[float, "of the batch's tokens, spent on minors at most"] = 0.8,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not weight >= 0:
            raise BesagError(f"weight = {weight}: the price of an incompatible minor cannot be negative")
        if not 0 < share <= 1:
            raise BesagError(f"share = {share}: minors may take a share of the batch between 0 and 1")
        self.weight, self.share = weight, share

    def forward(self, batch: Batch) -> Loss:
        states = self.encoder.states(batch.inputs, batch.layout)  # (T, H)
        losses, guesses = predict(self.encoder, states, batch)
        total, count = (losses * batch.weight).sum(), batch.weight.sum()
        minors = self.draw(states, batch)
        if len(minors.i) == 0:
            return Loss(total, {}, guesses)
        first, second = self.log_odds(batch, minors)  # (P,), (P,)
        price = F.smooth_l1_loss(first, second)
        with torch.no_grad():
            logs = {
                "incompatibility": (first - second).abs().mean(),
                "dependence": (first.abs() + second.abs()).mean() / 2,
            }
        return Loss(total + self.weight * price * count, logs, guesses)

    @torch.no_grad()
    def draw(self, states: Tensor, batch: Batch) -> Minors:
        """One pair of neighbouring hidden places in as many passages as `share` allows."""
        layout, device = batch.layout, batch.ids.device
        chance = torch.Generator(device).manual_seed(self._key(batch))
        hidden = batch.asked[batch.weight > 0]
        row = layout.row[hidden]
        turn = torch.rand(max(len(hidden) - 1, 0), generator=chance, device=device)
        pair = row[1:] == row[:-1]
        turn = turn.masked_fill(~pair, -1.0)
        best = turn.new_full((layout.rows,), -1.0).scatter_reduce(0, row[:-1], turn, "amax")
        index = (pair & (turn == best[row[:-1]])).nonzero()[:, 0]  # (P',) at most one a passage
        index = index[torch.randperm(len(index), generator=chance, device=device)]
        lengths = layout.bounds.diff().long()[row[index]]
        index = index[4 * lengths.cumsum(0) <= self.share * len(batch.ids)]  # (P,)
        i, j = hidden[index], hidden[index + 1]
        others = [self._another(states, batch, place, chance) for place in (i, j)]
        a, b = (torch.stack([batch.ids[p], o], 1) for p, o in zip((i, j), others, strict=True))
        return Minors(i, j, a, b)

    def log_odds(self, batch: Batch, minors: Minors) -> tuple[Tensor, Tensor]:
        """ω_i and ω_j (P,) of each minor."""
        count, device = len(minors.i), batch.ids.device
        bounds = batch.layout.bounds.long()
        row = batch.layout.row[minors.i].repeat_interleave(4)  # (4P,): b, b' shown; a, a' shown
        layout = Layout.of_lengths(bounds.diff()[row], batch.layout.longest)
        source = (bounds[row] - layout.bounds[:-1].long())[layout.row] + torch.arange(len(layout.row), device=device)
        layout = layout._replace(position=batch.layout.position[source])
        shift = (layout.bounds[:-1].long() - bounds[row]).view(count, 4)
        i, j = minors.i[:, None] + shift, minors.j[:, None] + shift  # (P, 4) where the places stand among the copies
        ids = batch.inputs[source]
        ids[i[:, :2]], ids[j[:, 2:]] = self.encoder.mask_id, self.encoder.mask_id
        ids[j[:, :2]], ids[i[:, 2:]] = minors.b, minors.a
        asked = torch.cat([i[:, :2], j[:, 2:]], 1)  # (P, 4)
        if batch.layout.tiles is not None:  # shapes are static, or else a compiled network would be compiled anew
            more = int(self.share * len(batch.ids)) - len(ids)
            ids = F.pad(ids, (0, more), value=self.encoder.pad_id)
            layout = filled(layout, more, rows=len(batch.layout.bounds))
        states = self.encoder.states(ids, layout)
        logits = self.encoder.logits(states[asked.flatten()]).float().view(count, 4, -1)
        wanted = torch.stack([minors.a, minors.a, minors.b, minors.b], 1)  # (P, 4, 2)
        two = logits.gather(2, wanted)
        odds = two[..., 0] - two[..., 1]  # (P, 4)
        return odds[:, 0] - odds[:, 1], odds[:, 2] - odds[:, 3]

    def _another(self, states: Tensor, batch: Batch, place: Tensor, chance: torch.Generator) -> Tensor:  # (P,)
        """A token other than the text's, as likely as the network has just said it is."""
        logits = self.encoder.logits(states[place]).float()
        logits[:, sorted(self.encoder.special_ids)] = -torch.inf
        logits.scatter_(1, batch.ids[place][:, None], -torch.inf)
        if not len(place):
            return place
        return torch.multinomial(logits.softmax(1), 1, generator=chance)[:, 0]

    def _key(self, batch: Batch) -> int:
        """Of this batch alone, whoever runs it."""
        first = int(batch.draw[0]) if len(batch.draw) else 0
        return int(noise.uniform(self.seed, Training.COMPATIBLE, np.array(first), np.array(batch.step)) * 2**52)


def filled(layout: Layout, tokens: int, rows: int) -> Layout:
    """The layout with so many tokens of padding behind, in sequences of a tile each, and empty ones up to `rows`.

    Every sequence is a tile by itself: copies of one passage have one length, so nothing is gained by ordering them.
    """
    lengths = layout.bounds.diff().long()
    room = max(rows - len(lengths), -(-tokens // TILE))
    padding = (tokens - TILE * torch.arange(room, device=lengths.device)).clamp(0, TILE)
    whole = Layout.of_lengths(torch.cat([lengths, padding]), max(layout.longest, TILE))
    position = torch.cat([layout.position, whole.position[len(layout.position) :]])
    return whole._replace(position=position, tiles=whole.bounds)
