"""Adam with decoupled weight decay: w ← (1 − η λ) w − η m̂ / (√v̂ + ε)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from besag.training.optimizers.masters import Masters, adam_direction, adam_moments


class AdamW(Masters):
    def __init__(self, params: Any, *, betas: tuple[float, float] = (0.9, 0.98), eps: float = 1e-8) -> None:
        super().__init__(params, {"lr": 1e-3, "weight_decay": 0.0, "betas": betas, "eps": eps})

    def begin(self, weight: Tensor) -> dict[str, Tensor]:
        return adam_moments(weight)

    def move(self, group: dict[str, Any], weights: list[Tensor], masters: list[Tensor], grads: list[Tensor]) -> None:
        adamw_move(self, group, weights, masters, grads)


def adamw_move(
    optimizer: Masters, group: dict[str, Any], weights: list[Tensor], masters: list[Tensor], grads: list[Tensor]
) -> None:
    states = [optimizer.state[weight] for weight in weights]
    direction = adam_direction(group, [s["mean"] for s in states], [s["square"] for s in states], grads)
    torch._foreach_mul_(masters, 1 - group["lr"] * group["weight_decay"])
    torch._foreach_add_(masters, direction, alpha=-group["lr"])
