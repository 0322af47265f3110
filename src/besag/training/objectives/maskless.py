"""Teaching a network to answer in one pass: shown the whole text, say at each place what it would say were it hidden.

    loss = KL( p(· | x_∖K) ‖ q(· at i | x) )  +  w · mlm        at the places i ∈ K that the law hid

p is the network shown the batch with K masked (no gradient), q the same network shown the plain text. A token must then
not count for its own place. Once that is learned, one pass over the plain text gives all that pll asks of n passes:
Σ_i log q(x_i at i | x) ≈ Σ_i log p(x_i | x_∖i). This sum is what the score `unmasked` computes.

- At a high rate K holds many places, so what is taught is p(· | x_∖K), which knows less than p(· | x_∖i): an average
  over K. `one_at_a_time` masks one place of each passage instead, and teaches exactly what pll asks; it gives fewer
  places a step and takes one more pass.
- `teacher="self"`: p is the network as it now is. Without the mlm part (`weight`) both could drift to one flat answer.
  `teacher="frozen"`: p is a copy taken at the start, for a network that is trained already; then weight = 0 is sound,
  saves a pass, and gives a scorer for `unmasked` that no longer answers about masks: `purpose` is "encode".

Places that were asked about but not shown as the mask (`random`, `keep` of the recipe) teach nothing and are left out.
The divergence is scaled to mean × Σ batch.weight.
"""

from __future__ import annotations

import copy
from math import inf
from typing import Annotated, Literal

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.distil import Teacher, divergence
from besag.training.objectives.mdlm import predictions
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, cross_entropy


@OBJECTIVES.register
class Maskless(Objective):
    name = "maskless"
    title = "one pass over the plain text answers as if each place were hidden"
    cite = ("salazar2020",)
    mask_shown = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        weight: Annotated[float, "of plain masked modelling"] = 1.0,
        teacher: Annotated[Literal["self", "frozen"], "the network as it is, or a copy of its start"] = "self",
        one_at_a_time: Annotated[bool, "mask one place of each passage: what pll asks"] = False,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 <= weight < inf or (weight == 0 and teacher == "self"):
            raise BesagError(f"weight={weight!r}: above 0, or with teacher='frozen' at least 0")
        self.weight, self.one_at_a_time = weight, one_at_a_time
        self.frozen = Teacher(duplicate(encoder)) if teacher == "frozen" else None

    @property
    def purpose(self) -> str:
        return "score" if self.weight > 0 else "encode"

    def forward(self, batch: Batch) -> Loss:
        logits = None
        if self.weight or not (self.frozen or self.one_at_a_time):
            logits = self.encoder.logits(self.encoder.states(batch.inputs, batch.layout)[batch.asked])  # (M, V)
        places, weight = self._singles(batch) if self.one_at_a_time else self._asked(batch)
        wanted = self._wanted(batch, places, weight, logits)
        said = self.encoder.logits(self.encoder.states(batch.ids, batch.layout)[places])
        apart = (divergence(wanted, said) * weight).sum() / weight.sum().clamp(min=1)
        total, logs, seen = apart * batch.weight.sum(), {"one_pass_kl": apart.detach()}, None
        if logits is not None and self.weight:
            target = batch.ids[batch.asked]
            losses = cross_entropy(logits, target)
            summed = (losses * batch.weight).sum()
            total = total + self.weight * summed
            logs["masked_loss"] = (summed / batch.weight.sum().clamp(min=1)).detach()
            seen = predictions(self.encoder, target, losses, logits)
        return Loss(total, logs, seen)

    def _asked(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The asked places (M,), and what each counts: nothing where no mask was shown."""
        return batch.asked, batch.weight * (batch.inputs[batch.asked] == self.encoder.mask_id)

    def _singles(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """One free place of each sequence, that with the smallest noise (R,); a sequence without one counts 0."""
        row = batch.layout.row
        noise = draws.uniform(self.seed, Training.MASKLESS_PLACE, batch.draw[row], batch.layout.column)  # (T,)
        order = (2.0 * row + torch.where(batch.free, noise, 1.5)).argsort()  # sequence by sequence
        first = batch.layout.bounds[:-1].long().clamp(max=len(row) - 1)
        empty = batch.layout.bounds[1:] == batch.layout.bounds[:-1]
        places = order[first]
        return places, (batch.free[places] & ~empty).float()

    def _wanted(self, batch: Batch, places: Tensor, weight: Tensor, logits: Tensor | None) -> Tensor:  # (M, V)
        """What the network, or its frozen copy, says at these places with them hidden; never differentiated."""
        inputs = batch.inputs
        if self.one_at_a_time:
            inputs = batch.ids.index_fill(0, places[weight > 0], self.encoder.mask_id)
        if self.frozen is not None:
            return self.frozen.logits(inputs, batch, places, self.encoder)
        if logits is not None and not self.one_at_a_time:
            return logits.detach()
        with torch.no_grad():
            return self.encoder.logits(self.encoder.states(inputs, batch.layout)[places])


def duplicate(encoder: Encoder) -> Encoder:
    """The same network with weights of its own."""
    return Encoder(
        copy.deepcopy(encoder.model),
        mask_id=encoder.mask_id,
        pad_id=encoder.pad_id,
        special_ids=encoder.special_ids,
        ragged=encoder.ragged,
    )
