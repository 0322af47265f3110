"""An objective, and what is learned beside it by the same encoder.

    total = objective + weight · mean loss of the other

The objective's losses are sums that the run divides by Σ batch.weight; the other's mean is multiplied by that sum, so
its weight means the same whatever is masked. A run wraps its objective in it, and trains the whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from besag.training.network.batch import Batch
from besag.training.objectives.objective import Loss, Objective


class Mixture(Objective):
    """Subclasses say what is learned beside, and add it to the objective's loss."""

    def __init__(self, objective: Objective, *, weight: float, seed: int) -> None:
        nn.Module.__init__(self)  # the encoder stays where it is, in the objective: its weights are saved once
        self.objective, self.weight, self.seed = objective, weight, seed

    @property
    def encoder(self) -> Any:  # type: ignore[override]
        return self.objective.encoder

    @property
    def masks(self) -> bool:  # type: ignore[override]
        return self.objective.masks

    @property
    def purpose(self) -> str:
        return self.objective.purpose

    def shares(self, batch: Batch) -> tuple[float | Tensor, float | Tensor]:
        """What the objective and the other count."""
        return 1.0, self.weight

    def added(self, loss: Loss, batch: Batch, mean: Tensor, logs: dict[str, Tensor]) -> Loss:
        """The objective's loss of a batch, with the other's mean, and what both tell."""
        own, beside = self.shares(batch)
        return loss._replace(
            total=own * loss.total + beside * batch.weight.sum() * mean,
            logs={**loss.logs, **{name: value.detach() for name, value in logs.items()}},
        )

    def save_extras(self, folder: str | Path) -> None:
        self.objective.save_extras(folder)
