"""LAMB (You et al. 2020): Adam's direction, with each weight's step as long as the weight itself: for large batches.

r = m̂ / (√v̂ + ε) + λ w,   w ← w − η · φ(‖w‖) / ‖r‖ · r,   φ(z) = min(z, 10), and the ratio is 1 where either is 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from besag.training.optimizers.masters import Masters, adam_direction, adam_moments

LARGEST = 10.0


class Lamb(Masters):
    def __init__(self, params: Any, *, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6) -> None:
        super().__init__(params, {"lr": 1e-3, "weight_decay": 0.0, "betas": betas, "eps": eps})

    def begin(self, weight: Tensor) -> dict[str, Tensor]:
        return adam_moments(weight)

    def move(self, group: dict[str, Any], weights: list[Tensor], masters: list[Tensor], grads: list[Tensor]) -> None:
        states = [self.state[weight] for weight in weights]
        direction = adam_direction(group, [s["mean"] for s in states], [s["square"] for s in states], grads)
        torch._foreach_add_(direction, masters, alpha=group["weight_decay"])
        for master, turn in zip(masters, direction, strict=True):
            size, length = master.norm().clamp(max=LARGEST), turn.norm()
            ratio = torch.where((size > 0) & (length > 0), size / length, torch.ones_like(size))
            master.sub_(turn * (group["lr"] * ratio))
