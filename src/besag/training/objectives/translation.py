"""An objective beside sources: each is read once a batch, and a masked decoder learns how long its targets are.

    total = objective + weight · mean over targets of −log p(n | s)

A run wraps its objective in it. The objective's losses are sums that the run divides by Σ batch.weight; the length's
mean is multiplied by that sum, so its weight means the same whatever is masked. n counts a target's tokens without the
`special` ones around it. The head is saved beside the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from besag.training.network.batch import Batch
from besag.training.network.translator import Translator
from besag.training.objectives.objective import Loss, Objective


class Translation(Objective):
    """`logs` tells the loss of the length and how often the likeliest one is right."""

    name = "translation"

    def __init__(self, objective: Objective, *, special: int, weight: float) -> None:
        nn.Module.__init__(self)  # the encoder stays where it is, in the objective: its weights are saved once
        self.objective, self.special, self.weight = objective, special, weight
        self.seed = objective.seed

    @property
    def encoder(self) -> Any:  # type: ignore[override]
        return self.objective.encoder

    @property
    def masks(self) -> bool:  # type: ignore[override]
        return self.objective.masks

    @property
    def purpose(self) -> str:
        return self.objective.purpose

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
        total = loss.total + self.weight * batch.weight.sum() * length
        return loss._replace(
            total=total, logs={**loss.logs, "length_loss": length.detach(), "length_accuracy": right.detach()}
        )

    def save_extras(self, folder: str | Path) -> None:
        """The head, beside the finished model; and whatever the objective itself saves."""
        own: Any = self.objective
        if hasattr(own, "save_extras"):
            own.save_extras(folder)
        if self.encoder.length_head is not None:
            self.encoder.length_head.save(folder)
