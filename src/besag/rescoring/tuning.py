"""Weights that make a loss small: a grid, then golden section for one weight and a simplex for several.

The loss of a ranking is constant between the weights at which a winner changes, so neither search proves a minimum:
both return the best weight they have looked at, never one below 0. Of equals it is 0 where 0 is one of them, and else
the one nearest their middle: the edge of a plateau is where a winner changes. Knows functions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from besag.arrays import Floats

Loss = Callable[[tuple[float, ...]], float]
GRID = tuple(round(0.05 * step, 2) for step in range(41))  # 0, 0.05 … 2
GOLDEN = (5**0.5 - 1) / 2
STEPS = 16  # of golden section: a bracket of 0.1 shrinks to 5e-5


def tuned(loss: Loss, weights: int, grid: Sequence[float] = GRID) -> tuple[float, ...]:
    """The best λ found, of so many language models."""
    seen: dict[tuple[float, ...], float] = {}

    def looked(point: Sequence[float] | Floats) -> float:
        at = tuple(round(max(0.0, float(one)), 6) for one in point)
        if at not in seen:
            seen[at] = loss(at)
        return seen[at]

    alone = [_one(lambda x, k=k: looked(_unit(k, weights, x)), grid) for k in range(weights)]  # type: ignore[misc]
    if weights > 1:
        step = max(grid[1] - grid[0], 0.05)
        for start in (np.array(alone) / weights, *(np.array(_unit(k, weights, alone[k])) for k in range(weights))):
            simplex(looked, start, step)
    lowest = min(seen.values())
    return _central([at for at, one in seen.items() if one == lowest])


def _central(equals: Collection[tuple[float, ...]]) -> tuple[float, ...]:
    points = np.array(sorted(equals))  # (n, K)
    if not points[0].any():
        return tuple(points[0].tolist())
    nearest = np.abs(points - (points.min(0) + points.max(0)) / 2).sum(1).argmin()
    return tuple(points[nearest].tolist())


def _unit(place: int, size: int, value: float) -> tuple[float, ...]:
    return tuple(value if k == place else 0.0 for k in range(size))


def _one(loss: Callable[[float], float], grid: Sequence[float]) -> float:
    """Grid, then golden section between the neighbours of its best point."""
    best = min(range(len(grid)), key=lambda place: (loss(grid[place]), grid[place]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return golden_section(loss, low, high, grid[best])


def golden_section(loss: Callable[[float], float], low: float, high: float, start: float) -> float:
    """The best point seen while a bracket shrinks by 0.618 a step, beginning with `start`."""
    found = {start: loss(start)}
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    for _ in range(STEPS):
        for point in (left, right):
            found.setdefault(point, loss(point))
        if found[left] <= found[right]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
    return min(found, key=lambda point: (found[point], point))


def simplex(loss: Callable[[Floats], float], start: Floats, step: float, rounds: int = 60) -> Floats:
    """Nelder and Mead's walk of K + 1 corners: reflect the worst, stretch, contract, or shrink towards the best."""
    corners = [np.asarray(start, np.float64), *(start + step * one for one in np.eye(len(start)))]
    for _ in range(rounds):
        corners.sort(key=loss)
        best, worst, centre = corners[0], corners[-1], np.mean(corners[:-1], 0)
        reflected = 2 * centre - worst
        if loss(reflected) < loss(best):
            stretched = 3 * centre - 2 * worst
            corners[-1] = min(reflected, stretched, key=loss)
        elif loss(reflected) < loss(corners[-2]):
            corners[-1] = reflected
        else:
            inner = (centre + min(reflected, worst, key=loss)) / 2
            if loss(inner) < min(loss(reflected), loss(worst)):
                corners[-1] = inner
            else:
                corners = [best, *((best + one) / 2 for one in corners[1:])]
    return min(corners, key=loss)
