"""How sure a mean is, whether two means differ, how columns correlate: bootstrap, sign flips, Holm, ranks.

Knows columns of numbers and which of them belong together (`groups`: the pairs of one text), nothing of what they are.
Texts were drawn, so texts are what is drawn again and what is flipped; with one number a text these are the ordinary
bootstrap and the ordinary paired permutation test. All draws come from an explicit seed.

With S_g the sum and n_g the size of group g = 1 … G:

    bootstrap    m* = Σ_g c_g S_g / Σ_g c_g n_g,  c ~ Multinomial(G; 1/G, …, 1/G)
    sign flips   p = P(|Σ_g ε_g S_g| ≥ |Σ_g S_g|),  ε_g = ±1: exact where each S_g is as likely as −S_g
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Floats
from besag.errors import BesagError, quoted

BLOCK = 2**21  # draws in memory at a time
TIE = 1e-12  # of the size of the terms: two sums of the same numbers in another order are equal


class Interval(NamedTuple):
    value: float
    low: float  # nan where there is one group only, which says nothing of others
    high: float


def intervals(
    values: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    exponential: bool = False,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> list[Interval]:
    """The mean of each column of (n, c), or exp of it, with its percentile bootstrap interval.

    All columns see the same draws. A mean of numbers of which one is infinite is infinite, and so is it in the draws
    that hold that number.
    """
    if not 0 < level < 1:
        raise BesagError(f"the level of an interval lies between 0 and 1, and {quoted(level)} does not")
    sums, sizes = _by_group(values, groups)  # (G, c), (G,)
    mean = sums.sum(0) / sizes.sum()  # (c,)
    drawn = np.concatenate(list(_resampled(sums, sizes, resamples, seed)))  # (R, c)
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0, method="inverted_cdf")
    if len(sizes) < 2:
        low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    with np.errstate(over="ignore"):  # a perplexity beyond the range of a float is infinite
        shown = np.exp([mean, low, high]) if exponential else np.stack([mean, low, high])
    return [Interval(*column) for column in shown.T.tolist()]


def sign_flips(
    differences: ArrayLike, groups: ArrayLike | None = None, *, resamples: int = 10_000, seed: int = 0
) -> Floats:
    """The two-sided p-value of each column of paired differences (n, c), under "the sign of a group is a coin's".

    All 2^G patterns are gone through where there are no more than `resamples`; otherwise that many are drawn, and the
    observed one counts as one of them, so that p is never 0. A column with an infinite difference has none (nan).
    """
    sums, sizes = _by_group(differences, groups)  # (G, c)
    usable = np.isfinite(sums).all(0)
    sums = np.where(usable, sums, 0.0)
    observed = np.abs(sums.sum(0)) - TIE * np.abs(sums).sum(0)  # (c,)
    exact = len(sizes) <= 52 and 2 ** len(sizes) <= resamples
    signs = _all_signs(len(sizes)) if exact else _some_signs(len(sizes), resamples, seed)
    reached, count = np.zeros(sums.shape[1]), 0
    for block in signs:  # (r, G)
        reached += (np.abs(block @ sums) >= observed).sum(0)
        count += len(block)
    p = reached / count if exact else (reached + 1) / (count + 1)
    return np.where(usable, p, np.nan)


def holm(p_values: ArrayLike) -> Floats:
    """Holm's p-values: rejecting those below α keeps the chance of any false rejection among all of them below α.

    p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j)) in increasing order; a missing one (nan) stays so and is not counted.
    """
    p: Floats = np.asarray(p_values, np.float64)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]  # nan sorts last
    steps = np.arange(len(order), 0, -1)
    adjusted = np.full_like(p, np.nan)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * steps))
    return adjusted


def _by_group(values: ArrayLike, groups: ArrayLike | None) -> tuple[Floats, Floats]:
    """The sums (G, c) and sizes (G,) of the groups; each number its own group where none are named."""
    whole: Floats = np.asarray(values, np.float64)
    whole = whole[:, None] if whole.ndim == 1 else whole  # (n, c)
    if not len(whole) or np.isnan(whole).any():
        raise BesagError("a mean needs at least one number, and every one of them a number")
    if groups is None:
        return whole, np.ones(len(whole))
    _, which = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.zeros((which.max() + 1, whole.shape[1]))
    np.add.at(sums, which, whole)
    return sums, np.bincount(which).astype(np.float64)


def _resampled(sums: Floats, sizes: Floats, resamples: int, seed: int) -> Iterator[Floats]:
    """Means over groups drawn with replacement, (r, c) at a time."""
    count, generator = len(sizes), np.random.default_rng(seed)
    infinite = np.isinf(sums)
    finite = np.where(infinite, 0.0, sums)
    for rows in _blocks(resamples, count):
        drawn = generator.integers(count, size=(rows, count)) + count * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count).astype(np.float64)
        means = (times @ finite) / (times @ sizes)[:, None]
        yield np.where(times @ infinite > 0, np.inf, means) if infinite.any() else means


def _all_signs(count: int) -> Iterator[Floats]:
    patterns = np.arange(2**count)[:, None] >> np.arange(count)
    yield 1.0 - 2.0 * (patterns & 1).astype(np.float64)


def _some_signs(count: int, resamples: int, seed: int) -> Iterator[Floats]:
    generator = np.random.default_rng(seed)
    for rows in _blocks(resamples, count):
        yield 1.0 - 2.0 * generator.integers(2, size=(rows, count), dtype=np.int8).astype(np.float64)


def _blocks(resamples: int, count: int) -> Iterator[int]:
    """How many of the draws are made at a time."""
    step = max(1, BLOCK // count)
    return (min(step, resamples - start) for start in range(0, resamples, step))


def pearson(x: Floats, y: Floats) -> float:
    """nan where one of the two does not vary."""
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale > 0 else math.nan


def ranks(x: Floats) -> Floats:
    """From 1; equal values share the mean of their ranks."""
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[which], np.float64)


def spearman(x: Floats, y: Floats) -> float:
    """The correlation of ranks; nan where one of the two does not vary."""
    return pearson(ranks(x), ranks(y))
