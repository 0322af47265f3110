"""Masked language modelling with a price on incompatible conditionals.

The conditionals at two places belong to a joint only if both give every 2 × 2 minor the same odds ratio
(`diagnostics/rectangle.py`): with tokens a, a' at place i and b, b' at place j,

    ω_i = [ℓ_i(a|b) − ℓ_i(a'|b)] − [ℓ_i(a|b') − ℓ_i(a'|b')]
    ω_j = [ℓ_j(b|a) − ℓ_j(b'|a)] − [ℓ_j(b|a') − ℓ_j(b'|a')]

and D = ω_i − ω_j must be 0. Normalising constants cancel, so logits ℓ will do. With h Huber's function (D²/2 up to 1,
|D| − 1/2 beyond), the loss is

    mlm + weight · Σ_passages |K| · h(D) · [drawn] / P(drawn)

a sum over passages, each counted as its asked tokens are. Where a minor comes from, so that it costs little: i and j
are two neighbouring hidden places, with everything else as the law of masks left it; a, b are the text's own tokens,
a', b' are drawn from what the network has just said there (never a special token). A minor takes four sequences as long
as its passage, so a passage is drawn with the chance share / 4, evenly over the run: a step costs 1 + share plain ones
on average. Which passages are drawn, at which places and with which tokens is decided by noise on (seed, draw, place):
neither the batch nor the process they are in matters. A passage of fewer than two asked places has no minor and pays
nothing; if that is true of all, the loss would be plain `mlm`, and is refused.

A network that ignores its neighbours has ω = 0 and is perfectly compatible: look at the dependence ½(|ω_i| + |ω_j|)
beside |D|. Both are logged.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.network.tiles import TILE
from besag.training.objectives import draws
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict

COPIES = 4  # of its passage that a minor takes
PATIENCE = 50  # batches without two hidden places in one passage, before it is said that there never are


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
    least_hidden = 2

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        weight: Annotated[float, "price of an incompatible minor"] = 0.1,
        share: Annotated[float, "of the tokens read, spent on minors besides, on average"] = 0.8,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 <= weight < inf:
            raise BesagError(f"weight = {weight}: the price of an incompatible minor is a number, 0 or more")
        if not 0 < share <= 1:
            raise BesagError(f"share = {share}: minors may take a share of the batch between 0 and 1")
        self.weight, self.share = weight, share
        self.chance = share / COPIES  # of a passage
        self._in_vain = 0  # batches in a row in which no passage could have a minor

    def forward(self, batch: Batch) -> Loss:
        states = self.encoder.states(batch.inputs, batch.layout)  # (T, H)
        losses, guesses = predict(self.encoder, states, batch)
        total = (losses * batch.weight).sum()
        minors = self.draw(states, batch)
        if len(minors.i) == 0:
            return Loss(total, {}, guesses)
        first, second = self.log_odds(batch, minors)  # (P,), (P,)
        row = batch.layout.row
        asked = torch.zeros(batch.layout.rows, device=row.device).index_add(0, row[batch.asked], batch.weight)  # (R,)
        price = F.smooth_l1_loss(first, second, reduction="none") * asked[row[minors.i]] / self.chance
        with torch.no_grad():
            logs = {
                "incompatibility": (first - second).abs().mean(),
                "dependence": (first.abs() + second.abs()).mean() / 2,
            }
        return Loss(total + self.weight * price.sum(), logs, guesses)

    @torch.no_grad()
    def draw(self, states: Tensor, batch: Batch) -> Minors:
        """One pair of neighbouring hidden places in each passage that is drawn and has one."""
        layout, device = batch.layout, batch.ids.device
        hidden = batch.asked[batch.weight > 0]
        row = layout.row[hidden]
        begins = (row[1:] == row[:-1]).nonzero()[:, 0]  # pairs, by their first place
        self._refuse_in_vain(len(begins))
        owner, place = row[begins], layout.column[hidden[begins]]
        turn = draws.uniform(self.seed, Training.COMPATIBLE_PAIR, batch.draw[owner], place)
        best = torch.full((layout.rows,), 2.0, dtype=turn.dtype, device=device).scatter_reduce(0, owner, turn, "amin")
        drawn = draws.spread(self.seed, Training.COMPATIBLE, batch.draw) < self.chance  # (R,)
        index = begins[(turn == best[owner]) & drawn[owner]]  # (P,) at most one a passage
        i, j = hidden[index], hidden[index + 1]
        a, b = (torch.stack([batch.ids[place], self._another(states, batch, place)], 1) for place in (i, j))
        return Minors(i, j, a, b)

    def _refuse_in_vain(self, pairs: int) -> None:
        self._in_vain = 0 if pairs else self._in_vain + 1
        if self._in_vain >= PATIENCE:
            raise BesagError(
                f"the objective 'compatible' compares two hidden places of a passage, and no passage of {PATIENCE} "
                "batches had two: hide more (masking.rate), predict more of it (masking.predict), give longer passages "
                "(data.max_length, data.unit), or take the objective 'mlm'"
            )

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
        if batch.layout.tiles is not None:  # few shapes, or else a compiled network would be compiled for each batch
            part = max(TILE, len(batch.ids) // 4)
            size = -(-len(ids) // part) * part
            layout = filled(layout, size - len(ids), rows=len(batch.layout.bounds) + -(-size // TILE))
            ids = F.pad(ids, (0, size - len(ids)), value=self.encoder.pad_id)
        states = self.encoder.states(ids, layout)
        logits = self.encoder.logits(states[asked.flatten()]).float().view(count, 4, -1)
        wanted = torch.stack([minors.a, minors.a, minors.b, minors.b], 1)  # (P, 4, 2)
        two = logits.gather(2, wanted)
        odds = two[..., 0] - two[..., 1]  # (P, 4)
        return odds[:, 0] - odds[:, 1], odds[:, 2] - odds[:, 3]

    def _another(self, states: Tensor, batch: Batch, place: Tensor) -> Tensor:  # (P,)
        """A token other than the text's, as likely as the network has just said it is."""
        logits = self.encoder.logits(states[place]).float()
        logits[:, sorted(self.encoder.special_ids)] = -torch.inf
        logits.scatter_(1, batch.ids[place][:, None], -torch.inf)
        row, column = batch.layout.row[place], batch.layout.column[place]
        return draws.tokens(logits, draws.uniform(self.seed, Training.COMPATIBLE_TOKEN, batch.draw[row], column))


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
