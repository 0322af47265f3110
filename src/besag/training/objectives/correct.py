"""Masked modelling among its own mistakes (CMLMC): some shown tokens are the network's own guesses, to be corrected.

    ŷ = the likeliest tokens where all places are hidden                a first pass, without a gradient
    x̃ = the masked text, a `share` of its shown tokens replaced by ŷ    at places C
    loss = Σ over hidden places + weight · Σ over C of −log p(x_i | x̃)

In iterative decoding what stands around a hidden place was guessed in earlier steps; a network that only ever saw true
tokens trusts them. At places of C it is asked about a token that it sees. Masks are those of the law, so a decoder that
sees both sides is to be given all rates (`masking.rate_law = "uniform"`).
"""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict


@OBJECTIVES.register
class Correct(Objective):
    name = "correct"
    title = "hidden tokens, and own guesses that are to be corrected (CMLMC)"
    cite = ("huang2022",)
    translates = True

    ordinary: Tensor  # (V,) bool: may be a guess

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        share: Annotated[float, "of the shown tokens that are replaced by guesses"] = 0.3,
        weight: Annotated[float, "of the loss at replaced tokens"] = 1.0,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 < share <= 1:
            raise BesagError(f"share={share!r} is one of the shown tokens: above 0, at most 1")
        if not weight >= 0:
            raise BesagError(f"weight={weight!r}: 0 or more")
        self.share, self.weight = share, weight
        self.register_buffer("ordinary", torch.ones(encoder.width, dtype=torch.bool), persistent=False)
        self.ordinary[sorted({*encoder.special_ids, encoder.mask_id})] = False

    def forward(self, batch: Batch) -> Loss:
        inputs, replaced = self.replaced(batch)
        states = self.encoder.states(inputs, batch.layout)
        losses, guesses = predict(self.encoder, states, batch)
        total, logs = (losses * batch.weight).sum(), {}
        if len(replaced):
            mending = self.encoder.losses(states[replaced], batch.ids[replaced])
            total = total + self.weight * mending.sum()
            logs = {"correction_loss": mending.detach().mean()}
        return Loss(total, logs, guesses)

    @torch.no_grad()
    def replaced(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(T,) the masked text with some shown tokens replaced by guesses, (C,) where."""
        row, mask_id = batch.layout.row, self.encoder.mask_id
        hidden = torch.zeros_like(batch.free).index_fill_(0, batch.asked, True) | (batch.inputs == mask_id)
        noise = draws.uniform(self.seed, Training.CORRECT_SHOWN, batch.draw[row], batch.layout.column)
        chosen = (batch.free & ~hidden & (noise < self.share)).nonzero()[:, 0]
        states = self.encoder.states(batch.ids.masked_fill(batch.free, mask_id), batch.layout)
        guess = self.encoder.logits(states[chosen]).float().masked_fill(~self.ordinary, -torch.inf).argmax(-1)
        return batch.inputs.index_put((chosen,), guess), chosen
