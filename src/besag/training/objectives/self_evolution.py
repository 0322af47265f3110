"""Self-evolution: find out what the network knows badly, ask that, and hold it in part to its own answer.

    first    the n places of a text fall into `groups` by noise, and each is hidden once:  r_i = p(· | x_∖group(i))
    K        k = rate · n places, drawn one after the other in proportion to 1 − r_i(x_i), or those with the largest
    second   loss = −Σ_{i ∈ K} Σ_v y_i(v) log p(v | x_∖K),    y_i = (1 − smooth) · [v = x_i] + smooth · r_i

The first passes have no gradient and no dropout. A place that is known is asked seldom, in this text and at this time
of the run; no table over the vocabulary is kept. A label is smoothed by what the network thinks could stand in that
very place, where ordinary smoothing takes the same share of every token. `masks` is False: the rate is an option here.

Not to be confused with the laws `adaptive` and `loss_weighted`, which go by the token, not by the place.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor

from besag.checks import whole_number
from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.mdlm import lowest, per_token, predictions, ranks, sizes
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, cross_entropy

LEAST = 1e-3  # what is known by heart is still asked now and then


class Questioned(NamedTuple):
    """What the network says of each token when it is hidden among its group; never differentiated."""

    losses: Tensor  # (T,) −log r_i(x_i), 0 at special tokens
    states: Tensor  # (T, H) from which the head reads r_i


@OBJECTIVES.register
class SelfEvolution(Objective):
    name = "self_evolution"
    title = "what the network knows badly, with labels smoothed by its own answers (self-evolution)"
    cite = ("zhong2022", "zhong2023")
    masks = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        rate: Annotated[float, "share of a passage that is hidden"] = 0.15,
        smooth: Annotated[float, "share of the network's own answer in the label"] = 0.1,
        groups: Annotated[int, "passes that find out what is known, each with one group hidden"] = 4,
        pick: Annotated[Literal["sample", "top"], "in proportion to what is not known, or the least known"] = "sample",
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 < rate <= 1:
            raise BesagError(f"rate={rate!r}: a share of the tokens, above 0 and at most 1")
        if not 0 <= smooth < 1:
            raise BesagError(f"smooth={smooth!r}: a share of the label, from 0 to below 1")
        whole_number(groups, "groups of the objective 'self_evolution'", most=1000)
        self.rate, self.smooth, self.groups, self.pick = rate, smooth, groups, pick

    def forward(self, batch: Batch) -> Loss:
        questioned = self.question(batch)
        hidden = self.hidden(batch, questioned.losses)
        asked = hidden.nonzero()[:, 0]  # (M,)
        target = batch.ids[asked]
        states = self.encoder.states(batch.ids.masked_fill(hidden, self.encoder.mask_id), batch.layout)
        logits = self.encoder.logits(states[asked])  # (M, V)
        plain = cross_entropy(logits, target)
        with torch.no_grad():
            own = self.encoder.logits(questioned.states[asked]).float().softmax(-1)  # r
        softened = -(own * logits.float().log_softmax(-1)).sum(-1)
        losses = (1 - self.smooth) * plain + self.smooth * softened
        logs = {
            "masked_loss": plain.detach().sum() / max(len(asked), 1),
            "questioned_loss": questioned.losses.sum() / batch.free.sum().clamp(min=1),
        }
        return Loss(per_token(losses.sum(), batch, len(asked)), logs, predictions(self.encoder, target, plain, logits))

    @torch.no_grad()
    def question(self, batch: Batch) -> Questioned:
        """Hide each group in turn, and keep what is said of its places."""
        layout, training = batch.layout, self.encoder.training
        noise = draws.uniform(self.seed, Training.EVOLUTION_GROUP, batch.draw[layout.row], layout.column)
        group = ranks(noise, batch.free, layout) % self.groups  # (T,)
        losses = torch.zeros(len(batch.ids), device=batch.ids.device)
        kept: Tensor | None = None
        self.encoder.eval()
        try:
            for number in range(self.groups):
                here = batch.free & (group == number)
                states = self.encoder.states(batch.ids.masked_fill(here, self.encoder.mask_id), layout)
                losses[here] = self.encoder.losses(states[here], batch.ids[here])
                kept = states if kept is None else torch.where(here[:, None], states, kept)
        finally:
            self.encoder.train(training)
        assert kept is not None
        return Questioned(losses, kept)

    def hidden(self, batch: Batch, losses: Tensor) -> Tensor:
        """(T,) bool: what is hidden where each place had such a loss (T,) when it was questioned."""
        layout, row = batch.layout, batch.layout.row
        weight = (-torch.expm1(-losses.double())).clamp(min=LEAST)  # 1 − r_i(x_i)
        if self.pick == "top":
            turn = torch.exp(-losses.double())
        else:  # a race: the next place is always drawn in proportion to the weights of those that are left
            uniform = draws.uniform(self.seed, Training.EVOLUTION_PICK, batch.draw[row], layout.column)
            turn = -uniform.log() / weight
        wanted = self.rate * sizes(batch.free, layout)  # (R,)
        up = draws.uniform(self.seed, Training.EVOLUTION_ROUNDING, batch.draw) < wanted - wanted.floor()
        return lowest(turn / (1 + turn), batch.free, layout, (wanted.floor() + up).clamp(min=1))
