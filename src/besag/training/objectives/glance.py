"""Glancing: hide by how wrong the first guess is (GLAT). What the network can say at once is not shown to it.

    ŷ = the likeliest tokens where all n places are hidden           a first pass, without a gradient
    k = ratio · #{i : ŷ_i ≠ x_i}                                     so many true tokens are shown, drawn uniformly
    loss = mean of −log p(x_i | the shown ones) over the hidden i    a second pass

So a network that guesses nothing learns with half of the text shown, and one that guesses all from nothing but masks,
as it will be asked. `ratio` goes to `end_ratio` over the run. Qian et al. hide by copies of the source's embeddings;
here hidden places are masks, so that the network can be asked as any masked one. `masks` is False: whatever law the
recipe names is not used. The total is mean × Σ batch.weight.
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
from besag.training.objectives.mdlm import lowest, per_token, predictions
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective


@OBJECTIVES.register
class Glance(Objective):
    name = "glance"
    title = "hiding by how wrong the first guess is (GLAT)"
    cite = ("qian2021",)
    masks = False
    translates = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        ratio: Annotated[float, "true tokens shown for each wrong guess, at the start"] = 0.5,
        end_ratio: Annotated[float, "the same at the end of the run"] = 0.3,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not (0 <= ratio < 1 and 0 <= end_ratio < 1):
            raise BesagError(f"ratio={ratio!r} and end_ratio={end_ratio!r}: from 0 to below 1, or nothing is asked")
        self.ratio, self.end_ratio = ratio, end_ratio

    def forward(self, batch: Batch) -> Loss:
        wrong = self.wrong(batch)  # (T,)
        hidden = self.hidden(batch, wrong)
        asked = hidden.nonzero()[:, 0]
        target = batch.ids[asked]
        states = self.encoder.states(batch.ids.masked_fill(hidden, self.encoder.mask_id), batch.layout)
        logits = self.encoder.logits(states[asked])
        losses = self.encoder.nll(logits, target)
        logs = {"guessed_wrong": wrong.float().sum() / batch.free.sum().clamp(min=1)}
        mean = losses.sum() / max(len(asked), 1)
        return Loss(per_token(mean, batch, 1), logs, predictions(self.encoder, target, losses, logits))

    def hidden(self, batch: Batch, wrong: Tensor) -> Tensor:
        """(T,) bool: what is hidden after guesses of which some are wrong (T,)."""
        layout, row = batch.layout, batch.layout.row
        distance = torch.zeros(layout.rows, device=row.device).index_add_(0, row, wrong.float())  # (R,)
        ratio = self.ratio + (self.end_ratio - self.ratio) * batch.progress
        noise = draws.uniform(self.seed, Training.GLANCE_SHOWN, batch.draw[row], layout.column)
        return batch.free & ~lowest(noise, batch.free, layout, (ratio * distance).floor().long())

    @torch.no_grad()
    def wrong(self, batch: Batch) -> Tensor:
        """(T,) bool: where the likeliest token differs from the true one, with every free place hidden."""
        states = self.encoder.states(batch.ids.masked_fill(batch.free, self.encoder.mask_id), batch.layout)
        places = batch.free.nonzero()[:, 0]
        found = torch.zeros_like(batch.free)
        found[places] = self.encoder.logits(states[places]).argmax(-1) != batch.ids[places]
        return found
