"""Masked language modelling: −Σ_{i ∈ K} log p(x_i | x_{∖K}), K from the law of masks."""

from __future__ import annotations

from besag.training.network.batch import Batch
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, predict


@OBJECTIVES.register
class MLM(Objective):
    name = "mlm"
    title = "masked language modelling"
    cite = ("devlin2019",)
    translates = True

    def forward(self, batch: Batch) -> Loss:
        states = self.encoder.states(batch.inputs, batch.layout)  # (T, H)
        losses, guesses = predict(self.encoder, states, batch)
        return Loss((losses * batch.weight).sum(), {}, guesses)
