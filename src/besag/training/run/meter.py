"""What is told of a run between two lines of its log: sums kept on the device, read when a line is written."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from besag.training.network.batch import Batch
from besag.training.objectives.objective import Loss


class Meter:
    """Means since the last line. Adding waits for nothing; `read` waits for the device."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}
        self.times: dict[str, int] = {}

    @torch.no_grad()
    def add(self, loss: Loss, batch: Batch) -> None:
        told = {name: value.detach().float() for name, value in loss.logs.items()}
        if loss.predicted is not None and len(loss.predicted.correct) == len(batch.weight):
            counted = batch.weight > 0
            right = (loss.predicted.correct & counted).sum() / counted.sum().clamp(min=1)
            told.setdefault("accuracy", right)
        for name, value in told.items():
            self.sums[name] = self.sums[name] + value if name in self.sums else value.clone()
            self.times[name] = self.times.get(name, 0) + 1

    def read(self) -> dict[str, float]:
        means = {name: float(value) / self.times[name] for name, value in self.sums.items()}
        self.sums, self.times = {}, {}
        return means

    def state(self) -> dict[str, Any]:
        return {"sums": dict(self.sums), "times": dict(self.times)}

    def restore(self, state: dict[str, Any], device: torch.device) -> None:
        self.sums = {name: value.to(device) for name, value in state["sums"].items()}
        self.times = dict(state["times"])
