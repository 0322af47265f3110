"""Many small joints at once: Arnold-Gokhale and the stationary law of N tables of m × k candidates, in float64.

    A[n, x, y] = p(a = x | b = y)  (columns sum to 1)        B[n, x, y] = p(b = y | a = x)  (rows sum to 1)

`ag` and `stationary` define what is computed; there one table may be a whole vocabulary, here are thousands of tables
of some dozens of tokens at most, so each may cost a linear system of its own size.

AG. With r = w(y) A + w'(x) B, s = log u and t = log v, the joint is where this convex function is least:

    G(s, t) = Σ r·log(w'(x) e⁻ˢ + w(y) e⁻ᵗ) + Σ_x w'(x) s(x) + Σ_y w(y) t(y)

Its gradient is w'·(1 − u⁺/u) and w·(1 − v⁺/v), where u⁺ and v⁺ are the marginals of q = r / (w/v + w'/u), to which the
plain step of AG goes. Its Hessian is the Laplacian of a graph between the x and the y. Each iteration takes the best of
the plain step, which never raises G, and two Newton steps; so G never rises, and the end is quadratic.

Stationary. The law of a under random-scan Gibbs, u = A Bᵀ u, by the elimination of Grassmann, Taksar and Heyman: no
subtraction, so every entry is right to rounding even where the table nearly falls apart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

TOLERANCE = 1e-12  # on the change that a plain step would still make to the marginals
LIMIT = 500  # iterations; some ten are usual
PATIENCE = 20  # iterations without progress, after which rounding allows none
ENOUGH = 1e-9  # the change at which a table that cannot come nearer counts as solved
STEPS = (1.0, 8.0)  # the longest Newton steps tried, in nats: within a nat the function resembles its parabola
RIDGE = 1e-12  # G does not change when all of s and t are shifted together: this makes the Hessian invertible
CELLS = 2**22  # numbers in the Hessians of one piece


def arnold_gokhale(
    log_a: Tensor,
    log_b: Tensor,
    log_u: Tensor,
    log_v: Tensor,
    weights: tuple[Tensor, Tensor] | None = None,
    limit: int = LIMIT,
) -> Tensor:
    """log q, (N, m, k), from log A and log B, started at the marginals log_u (N, m) and log_v (N, k).

    `weights` are log w' (N, m) of a's tokens and log w (N, k) of b's; None weighs all contexts alike. Where zeros cut
    the table into parts that no conditional connects, the start decides how much mass each part has. nan where nothing
    is found.
    """
    row, column = weights or (torch.zeros_like(log_u), torch.zeros_like(log_v))
    size = max(1, CELLS // (log_u.shape[1] + log_v.shape[1]) ** 2)
    pieces = [
        _solve(limit, *(part[start : start + size] for part in (log_a, log_b, log_u, log_v, row, column)))
        for start in range(0, len(log_a), size)
    ]
    return torch.cat(pieces)


def stationary(log_a: Tensor, log_b: Tensor) -> Tensor:
    """log of q = ½ (A v + B u), (N, m, k), where u = A v and v = Bᵀ u; nan where zeros leave u undetermined."""
    a, b = log_a.exp(), log_b.exp()
    u = _stationary(torch.einsum("nxy,nzy->nzx", a, b))  # (N, m); a moves from z to x by way of b
    v = torch.einsum("nx,nxy->ny", u, b)
    return torch.logaddexp(log_a + v.log()[:, None], log_b + u.log()[:, :, None]) - math.log(2.0)


class _Point(NamedTuple):
    z: Tensor  # (N, m + k) s and t
    value: Tensor  # (N,) G there
    share: Tensor  # (N, m, k) of w'/u in w/v + w'/u
    sums: Tensor  # (N, m + k) Σ_y r·share and Σ_x r·(1 − share): where the plain step goes, w'·u⁺/u and w·v⁺/v

    def unless(self, other: _Point, better: Tensor) -> _Point:
        """The other where it is better, (N,)."""
        pairs = zip(self, other, strict=True)
        return _Point(*(torch.where(better.view(-1, *[1] * (mine.ndim - 1)), new, mine) for mine, new in pairs))


class _Progress:
    """Which of N tables still come nearer: by half of their change, or by G beyond its rounding."""

    def __init__(self, tables: Tensor) -> None:
        self.change, self.value = (torch.full_like(tables, torch.inf) for _ in range(2))
        self.since = torch.zeros_like(tables)  # iterations

    def going(self, change: Tensor, value: Tensor, rounding: Tensor) -> Tensor:
        nearer, lower = change < self.change / 2, value < self.value - rounding
        self.change, self.value = (
            torch.where(better, new, old)
            for better, new, old in ((nearer, change, self.change), (lower, value, self.value))
        )
        self.since = torch.where(nearer | lower, 0.0, self.since + 1)
        return (change > TOLERANCE) & (self.since < PATIENCE)


def _solve(limit: int, log_a: Tensor, log_b: Tensor, s: Tensor, t: Tensor, row: Tensor, column: Tensor) -> Tensor:
    m, weight = s.shape[1], torch.cat([row, column], 1).exp()  # (N, m + k)
    log_r = torch.logaddexp(log_a + column[:, None], log_b + row[:, :, None])  # (N, m, k)
    r, rounding = log_r.exp(), 1e-14 * weight.sum(1)  # (N,) of G

    def at(z: Tensor) -> _Point:
        mine, other = (row - z[:, :m])[:, :, None], (column - z[:, m:])[:, None]
        value = (r * torch.logaddexp(mine, other)).sum((1, 2)) + (weight * z).sum(1)
        share = torch.sigmoid(mine - other)
        return _Point(z, value, share, torch.cat([(r * share).sum(2), (r * (1 - share)).sum(1)], 1))

    here, progress = at(torch.cat([s, t], 1)), _Progress(rounding)
    for _ in range(limit):
        growth = here.sums / weight
        change = ((growth - 1).abs() * (here.z - here.z[:, :m].logsumexp(1, keepdim=True)).exp()).amax(1)  # (N,)
        wandering = progress.going(change, here.value, rounding)
        if not bool(wandering.any()):
            break
        best = at(here.z + growth.log())
        newton = _newton_step(r * here.share * (1 - here.share), weight - here.sums)
        length = newton.abs().amax(1, keepdim=True)
        for longest in STEPS:
            tried = at(here.z + newton * (longest / length).clamp_max(1.0))
            best = best.unless(tried, tried.value <= best.value + rounding)  # where G is flat to rounding, Newton knows
        here = here.unless(best, wandering)  # what is found stays as it is, whatever it is solved beside
    cells = log_r - torch.logaddexp((row - here.z[:, :m])[:, :, None], (column - here.z[:, m:])[:, None])
    found = cells - cells.logsumexp((1, 2), keepdim=True)
    return found.masked_fill(~(change <= ENOUGH)[:, None, None], torch.nan)


def _newton_step(curvature: Tensor, gradient: Tensor) -> Tensor:
    """−H⁻¹·gradient, (N, m + k), for the Laplacian H of the bipartite graph with these edges."""
    degree = torch.cat([curvature.sum(2), curvature.sum(1)], 1).clamp_min(1e-300)  # (N, m + k)
    scale, m = degree.rsqrt(), curvature.shape[1]  # to a unit diagonal: degrees may be as small as probabilities
    system = torch.diag_embed(torch.full_like(degree, 1 + RIDGE))
    edges = -curvature * scale[:, :m, None] * scale[:, None, m:]
    system[:, :m, m:], system[:, m:, :m] = edges, edges.mT
    step = -scale * torch.linalg.solve_ex(system, scale * gradient)[0]
    return torch.nan_to_num(step - step.mean(1, keepdim=True))


def _stationary(moves: Tensor) -> Tensor:
    """(N, m) the stationary law of each chain, moves[n, z, x] = p(x | z): states are eliminated from the last on."""
    moves, m = moves.clone(), moves.shape[1]
    for state in range(m - 1, 0, -1):
        leaving = moves[:, state, :state].sum(1, keepdim=True)
        moves[:, :state, state] /= leaving
        moves[:, :state, :state] += moves[:, :state, state, None] * moves[:, state, None, :state]
    law = torch.ones_like(moves[:, 0])
    for state in range(1, m):
        law[:, state] = torch.einsum("nz,nz->n", law[:, :state], moves[:, :state, state])
    return law / law.sum(1, keepdim=True)
