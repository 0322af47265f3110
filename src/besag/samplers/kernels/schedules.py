"""How fast a text is masked: schedules of masked diffusion that treat all tokens alike.

At time t, from 0 (the text) to 1 (masks), a place still shows its token with probability α(t):

    log_linear   α(t) = 1 − t
    cosine       α(t) = 1 − cos(π(1 − t)/2)                       few reveals at first, many at the end
    geometric    α(t) = exp(−σ(t)),  σ(t) = σ₀^{1−t} σ₁^t          σ₀ = 10⁻⁵, σ₁ = 20

The way back starts from masks and goes from t to s < t: a place that is masked is revealed with probability (α(s) −
α(t)) / (1 − α(t)). So it is still masked at t with probability m(t) = (1 − α(t)) / (1 − α(1)): a product that
telescopes. Hence the time of its reveal has the distribution function m, and one uniform number u gives it: t* =
m⁻¹(u). No token and no answer of a network comes into this: *when* places are revealed is noise alone.

On a grid of T equal steps t_k = 1 − k/T a place is revealed in the step that t* falls into, and the last step reveals
all that is left. (Only under `geometric` is anything left: 1 − α(0) is 10⁻⁵ there, not 0, as 1 − α(1) is not quite
1.)

Every schedule gives the same law in the limit T → ∞: all of them reveal in a uniformly random order. They differ in
how many places share a step, and when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, log, pi

import torch
from torch import Tensor

from besag.checks import whole_number
from besag.errors import BesagError, nearest

FINEST, ENDLESS = 10**5, 2**40  # steps of a grid that makes each of them, and of one that makes those that reveal
LEAST, MOST = 1e-5, 20.0  # σ of the geometric schedule, at t = 0 and t = 1


@dataclass(frozen=True)
class Schedule:
    """m(t), the share that is masked at a time among what was masked at time 1, and its inverse. Both rise."""

    name: str
    masked: Callable[[Tensor], Tensor]
    when: Callable[[Tensor], Tensor]


def _geometric_masked(time: Tensor) -> Tensor:
    return torch.expm1(-LEAST * (MOST / LEAST) ** time) / expm1(-MOST)


def _geometric_when(masked: Tensor) -> Tensor:
    sigma = -torch.log1p(masked * expm1(-MOST))
    return (sigma / LEAST).log() / log(MOST / LEAST)


SCHEDULES = {
    schedule.name: schedule
    for schedule in (
        Schedule("log_linear", masked=lambda time: time, when=lambda masked: masked),
        Schedule(
            "cosine",
            masked=lambda time: torch.sin(pi / 2 * time),  # cos(π(1 − t)/2)
            when=lambda masked: torch.asin(masked) * (2 / pi),
        ),
        Schedule("geometric", masked=_geometric_masked, when=_geometric_when),
    )
}


def schedule(name: str) -> Schedule:
    if name not in SCHEDULES:
        raise BesagError(f"schedule={name!r}: give one of {', '.join(SCHEDULES)}.{nearest(str(name), SCHEDULES)}")
    return SCHEDULES[name]


def checked_grid(grid: int, most: int = FINEST) -> int:
    right = "time goes from 1 to 0 in so many equal steps, a whole number, at least 1"
    return whole_number(grid, "grid", right=right, most=most)


def reveal_step(by: Schedule, uniform: Tensor, grid: int) -> Tensor:
    """The step, 1 … grid, that reveals a place whose noise is `uniform`."""
    time = by.when(uniform).clamp(0, 1)
    return (((1 - time) * grid).long() + 1).clamp(max=grid)


def shown(by: Schedule, grid: int, step: int) -> float:
    """Return the share of positions that are visible after a step, from 0 before the first to 1 after the last."""
    if step in (0, grid):
        return float(step == grid)
    return float(1 - by.masked(1 - torch.tensor([step], dtype=torch.float64) / grid))
