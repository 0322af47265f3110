"""Arnold-Gokhale for any number of places: the joint whose conditionals are nearest to the model's, over all contexts.

    minimise  F(p) = Σ_i Σ_{x_−i} KL(c_i(·|x_−i) ‖ p(·|x_−i)),     c_i(x) = p(x_i | x_−i) of the model

F is convex in log p, and least where  p(x)·Σ_i 1/p(x_−i) = Σ_i c_i(x). So a joint over Π|C_i| cells needs the sum of
the conditionals and the marginals that leave one place out; those are iterated:

    p(x) ← Σ_i c_i(x) / Σ_i 1/p(x_−i),     normalised, from the uniform joint

This step never raises F (it minimises a bound that touches F); the accelerated one falls back to it where it would.
With two places it is `ag` with uniform weights. The residual is the total variation between p and its own update.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from besag.joints.acceleration import Step, convergence, fixed_point, refuse_nonsense
from besag.results.status import Status

TOLERANCE = 1e-9
LIMIT = 2000  # steps
ROUNDING = 1e-13  # of a sum over all cells, relative to its size


class Solved(NamedTuple):
    log_p: Tensor  # (|C_1|, …, |C_k|)
    status: Status
    details: Mapping[str, float | int]


class Mixture:
    """Takes log c_i of one place after the other; keeps the log of their sum."""

    def __init__(self, tolerance: float | None = None, limit: int = LIMIT) -> None:
        refuse_nonsense(tolerance, limit)
        self.tolerance, self.limit = tolerance or TOLERANCE, limit
        self.log_c = torch.tensor(-torch.inf)
        self.constant = 0.0  # Σ_i Σ c_i log c_i

    def add(self, place: int, log_c: Tensor) -> None:
        self.constant += float(torch.where(log_c > -torch.inf, log_c.exp() * log_c, 0.0).sum())
        self.log_c = torch.logaddexp(self.log_c.to(log_c), log_c)

    def solve(self) -> Solved:
        return solve(self.log_c, tolerance=self.tolerance, limit=self.limit, constant=self.constant)


def solve(log_c: Tensor, *, tolerance: float = TOLERANCE, limit: int = LIMIT, constant: float = 0.0) -> Solved:
    """p from log Σ_i c_i, (|C_1|, …, |C_k|) in float64; `constant`, Σ_i Σ c_i log c_i, makes the objective F."""
    block = _Block(log_c)
    residuals = [math.inf]

    def enough(theta: Tensor, step: Step) -> bool:
        if step.change <= tolerance:  # cheap, and mostly below the residual: so it is asked first
            residuals.append(block.residual(theta, step))
        return residuals[-1] <= tolerance

    found = fixed_point(block.step, block.start(), enough=enough, limit=limit)
    residual = residuals[-1] if residuals[-1] <= tolerance else block.residual(found.theta, found.step)
    status, details = convergence(found.iterations, residual, tolerance)
    return Solved(block.joint(found.theta), status, {**details, "objective": found.step.objective + constant})


class _Block:
    """θ = log p(x_−i) of every place i, one after the other, and the step from it."""

    def __init__(self, log_c: Tensor) -> None:
        self.log_c, self.c = log_c, log_c.exp()
        self.shapes = [(*log_c.shape[:i], 1, *log_c.shape[i + 1 :]) for i in range(log_c.ndim)]
        self.contexts = [math.prod(shape) for shape in self.shapes]

    def start(self) -> Tensor:
        sizes = torch.tensor(self.contexts, dtype=self.log_c.dtype, device=self.log_c.device)
        return torch.repeat_interleave(-sizes.log(), sizes.long())

    def unnormalised(self, theta: Tensor) -> Tensor:
        inverse = torch.full_like(self.log_c, -torch.inf)  # log Σ_i 1/p(x_−i)
        for shape, part in zip(self.shapes, torch.split(theta, self.contexts), strict=True):
            inverse = torch.logaddexp(inverse, -part.view(shape))
        return self.log_c - inverse

    def joint(self, theta: Tensor) -> Tensor:
        log_p = self.unnormalised(theta)
        return log_p - _total(log_p)

    def step(self, theta: Tensor) -> Step:
        log_p = self.joint(theta)
        image = torch.cat([log_p.logsumexp(i).flatten() for i in range(log_p.ndim)])
        likelihood = float(torch.where(self.c > 0, self.c * log_p, 0.0).sum())
        change = float((image.exp() - theta.exp()).abs().sum()) / (2 * log_p.ndim)
        return Step(
            image, float(image.sum()) - likelihood, ROUNDING * abs(likelihood), image.exp().sqrt().sqrt(), change
        )

    def residual(self, theta: Tensor, step: Step) -> float:
        return float((self.joint(theta).exp() - self.joint(step.image).exp()).abs().sum()) / 2


def _total(log_p: Tensor) -> Tensor:
    return log_p.flatten().logsumexp(0)
