"""Intervals of means over seeds, and the quantiles by which simulated experiments accept or reject a claim.

Student's interval holds for values and for ratios of values that share a seed; one seed alone has no interval.
FALSE_ALARM is divided by the number of comparisons of an experiment (Bonferroni), so that it bounds all of them
together, however they depend on each other. The result is the `tail` of each comparison: the probability beyond the
quantile, on one side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.errors import BesagError

STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201)  # 97.5 %, from 1 degree on

FALSE_ALARM = 0.005  # probability that a simulated experiment rejects any of its claims, all being true
NORMAL = NormalDist()


@cache
def student(tail: float, freedom: int) -> float:
    """Return t with P(T > t) = tail for Student's T; the finite series of its distribution, bisected."""
    low, high = 0.0, 1.0
    while _beyond(high, freedom) > tail:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, freedom) > tail else (low, middle)
    return high


def _beyond(t: float, freedom: int) -> float:
    """P(T > t) for t ≥ 0 (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd, square = freedom % 2, math.cos(angle) ** 2
    term = math.sin(angle) * (math.cos(angle) if odd else 1.0)
    total = 0.0 if odd and freedom == 1 else term
    for at in range(2 + odd, freedom - 1, 2):
        term *= square * (at - 1) / at
        total += term
    within = 2 / math.pi * (angle + total) if odd else total
    return (1 - within) / 2


def chi_square(freedom: float, tail: float) -> float:
    """Return x with P(χ² > x) = tail by Wilson and Hilferty: within a hundredth from two degrees on."""
    part = 2 / (9 * freedom)
    return float(freedom * max(1 - part - NORMAL.inv_cdf(tail) * math.sqrt(part), 1e-3) ** 3)


def binomial(count: int, chance: float, tail: float) -> tuple[int, int]:
    """Return the least and greatest number of successes whose tails have a probability above `tail`, exactly."""
    if not 0 < chance < 1:
        return (0, 0) if chance <= 0 else (count, count)
    logs = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * math.log(chance)
            + (count - k) * math.log1p(-chance) for k in range(count + 1)]  # fmt: skip
    below = np.cumsum(np.exp(logs))  # P(X ≤ k)
    above = np.cumsum(np.exp(logs[::-1]))[::-1]  # P(X ≥ k)
    return int(np.argmax(below > tail)), int(count - np.argmax(above[::-1] > tail))


def streams(seed: int, count: int) -> list[int]:
    """Return seeds of independent streams; those of another `seed` are others, as `seed + 1` would not be."""
    return [int(one) for one in np.random.SeedSequence(seed).generate_state(count)]


class Sure(NamedTuple):
    """A mean and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def interval(values: Sequence[float] | Floats) -> Sure:
    """The mean over seeds."""
    count = len(values)
    if count < 2:
        raise BesagError("an interval over seeds needs at least two of them")
    half = STUDENT[min(count - 1, len(STUDENT)) - 1] * float(np.std(values, ddof=1)) / count**0.5
    middle = float(np.mean(values))
    return Sure(middle, middle - half, middle + half)


def decided(differences: Floats, tail: float, pool: bool = False) -> Floats:
    """Return mean / half width of Student's interval of each row: above 1 its mean is surely above 0, below −1 below.

    Rows are comparisons, columns independent samples; with `pool` the spread is that within all rows.
    """
    cells, count = differences.shape
    spread = differences.var(1, ddof=1)
    if pool:
        spread = np.full(cells, spread.mean())
    half = student(tail, (count - 1) * (cells if pool else 1)) * np.sqrt(spread / count)
    mean = differences.mean(1)
    sure = np.where(mean > 0, np.inf, np.where(mean < 0, -np.inf, 0.0))  # of what does not vary
    return np.asarray(np.divide(mean, half, out=sure, where=half > 0))


def balance(found: Sequence[Floats]) -> str:
    """Return how many comparisons `decided` for and against what is claimed, which is a mean of 0 at most."""
    each = np.concatenate(found)
    return (
        f"of {len(each)} comparisons {(each < -1).sum()} are decided for the claims, {(each > 1).sum()} against them, "
        f"the others undecided; true claims are rejected with probability {FALSE_ALARM:.1%} at most"
    )


def ratio(one: Floats, other: Floats) -> Sure:
    """The geometric mean of one/other, seed by seed."""
    return Sure(*(float(end) for end in np.exp(interval(np.log(one / other)))))


def told(sure: Sure) -> str:
    """As a table has a ratio."""
    return f"×{sure.value:.2f} ({sure.low:.2f} to {sure.high:.2f})"


def table(
    found: Mapping[tuple[str, str], Floats], heads: tuple[str, str], measures: Sequence[str]
) -> list[dict[str, Any]]:
    """A row a cell, found[cell] being (seeds, measures): mean ± half its interval."""
    rows = []
    for cell, values in found.items():
        sure = [interval(column) for column in values.T]
        columns = {
            name: f"{one.value:.4f} ± {one.high - one.value:.4f}" for name, one in zip(measures, sure, strict=True)
        }
        rows.append({**dict(zip(heads, cell, strict=True)), **columns})
    return rows


def against(
    found: Mapping[tuple[str, str], Floats], usual: str, heads: tuple[str, str], measures: Sequence[str]
) -> list[dict[str, Any]]:
    """A row a cell that is not the usual one: its ratio to that, seed by seed."""
    rows = []
    for (where, which), values in found.items():
        if which != usual:
            pairs = zip(values.T, found[where, usual].T, strict=True)
            columns = dict(zip(measures, (told(ratio(one, other)) for one, other in pairs), strict=True))
            rows.append({heads[0]: where, heads[1]: which, **columns})
    return rows
