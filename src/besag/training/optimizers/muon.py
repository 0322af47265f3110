"""Muon (Jordan et al. 2024): the momentum of a hidden matrix, made orthogonal, is its step.

With momentum B ← μ B + G and U Σ Vᵀ the singular value decomposition of G + μ B, the step is U Vᵀ: all directions move
alike, also those that the gradient hardly shows. Newton-Schulz iterations in bfloat16 come near it without a
decomposition: X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X, from X = M / ‖M‖. Steps are scaled by 0.2 √max(m, n), so that their
entries are about as large as AdamW's (Liu et al. 2025), and learning rates and weight decay carry over from there.

Groups with `blocks` 0 (embeddings, norms, biases) move by AdamW; with 3, a matrix is three stacked ones (query, key,
value), each turned by itself.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from besag.training.optimizers.adamw import adamw_move
from besag.training.optimizers.masters import Masters, adam_moments

# steepest at 0 among quintics that keep singular values in about [0.7, 1.2] after five rounds
A, B, C = 3.4445, -4.7750, 2.0315
ROUNDS = 5


class Muon(Masters):
    def __init__(
        self, params: Any, *, momentum: float = 0.95, betas: tuple[float, float] = (0.9, 0.98), eps: float = 1e-8
    ) -> None:
        super().__init__(
            params,
            {"lr": 1e-3, "weight_decay": 0.0, "betas": betas, "eps": eps, "momentum": momentum, "blocks": 1},
        )
        self._blocks = {id(weight): group["blocks"] for group in self.param_groups for weight in group["params"]}

    def begin(self, weight: Tensor) -> dict[str, Tensor]:
        if self._blocks[id(weight)] == 0:
            return adam_moments(weight)
        return {"momentum": torch.zeros_like(weight, dtype=torch.float32)}

    def move(self, group: dict[str, Any], weights: list[Tensor], masters: list[Tensor], grads: list[Tensor]) -> None:
        if group["blocks"] == 0:
            adamw_move(self, group, weights, masters, grads)
            return
        momenta = [self.state[weight]["momentum"] for weight in weights]
        torch._foreach_mul_(momenta, group["momentum"])
        torch._foreach_add_(momenta, grads)
        ahead = torch._foreach_add(grads, momenta, alpha=group["momentum"])  # where the next step would lead
        torch._foreach_mul_(masters, 1 - group["lr"] * group["weight_decay"])
        alike = defaultdict(list)  # matrices of one shape are turned together
        for index, matrix in enumerate(ahead):
            alike[matrix.shape].append(index)
        for shape, members in alike.items():
            rows, columns = shape[0] // group["blocks"], shape[1]
            stacked = torch.stack([ahead[index] for index in members]).view(-1, rows, columns)
            turned = orthogonal(stacked).view(len(members), *shape).float()
            length = 0.2 * max(rows, columns) ** 0.5
            torch._foreach_add_([masters[index] for index in members], list(turned), alpha=-group["lr"] * length)


def orthogonal(matrices: Tensor) -> Tensor:  # (K, m, n) -> (K, m, n)
    """About U Vᵀ of each matrix, in bfloat16 on CUDA and float32 elsewhere."""
    tall = matrices.shape[1] > matrices.shape[2]
    x: Tensor = matrices.mT if tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(torch.bfloat16 if x.is_cuda else torch.float32)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x.mT if tall else x
