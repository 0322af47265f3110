"""An objective beside sources: each is read once a batch, and a masked decoder learns how long its targets are.

    total = objective + weight · mean over targets of −log p(n | s)

n counts a target's tokens without the `special` ones around it. The head is saved beside the model.
"""

from __future__ import annotations

from pathlib import Path

from besag.training.network.batch import Batch
from besag.training.network.translator import Translator
from besag.training.objectives.mixture import Mixture
from besag.training.objectives.objective import Loss, Objective


class Translation(Mixture):
    """`logs` tells the loss of the length and how often the likeliest one is right."""

    name = "translation"

    def __init__(self, objective: Objective, *, special: int, weight: float) -> None:
        super().__init__(objective, weight=weight, seed=objective.seed)
        self.special = special

    def forward(self, batch: Batch) -> Loss:
        translator: Translator = self.encoder
        with translator.reading_once():
            loss: Loss = self.objective(batch)
            if translator.length_head is None:
                return loss
            assert batch.layout.source is not None
            log_law = translator.length_head(*translator.read(batch.layout.source))  # (R, most)
        size = batch.layout.bounds.diff().long() - self.special  # (R,)
        length = -log_law.gather(1, size[:, None] - 1).mean()
        right = (log_law.argmax(-1) + 1 == size).float().mean()
        return self.added(loss, batch, length, {"length_loss": length, "length_accuracy": right})

    def save_extras(self, folder: str | Path) -> None:
        """The head, beside the finished model; and whatever the objective itself saves."""
        super().save_extras(folder)
        if self.encoder.length_head is not None:
            self.encoder.length_head.save(folder)
