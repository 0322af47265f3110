"""Is one ranking better than another on the same utterances?

    matched pairs      d_i = errors of A in utterance i − errors of B;  Z = d̄ / (s_d / √n),  p = 2 (1 − Φ(|Z|))
    paired bootstrap   utterances drawn again with replacement, both metrics of each draw, and their difference

The first is the matched-pair sentence-segment test (MAPSSWE) of Gillick and Cox (1989) with whole utterances as
segments: it takes the errors of different utterances to be independent, and is normal for many of them. Knows
statistics of utterances, nothing of what they are. All draws come from a seed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Floats
from besag.rescoring.metrics import Metric

LEVEL = 0.95
BLOCK = 2**21  # draws in memory at a time


class MatchedPairs(NamedTuple):
    mean: float  # of the differences
    z: float
    p: float  # two-sided; nan for fewer than two utterances


class Bootstrap(NamedTuple):
    difference: float  # metric of A − metric of B
    low: float
    high: float
    p: float  # two-sided: twice the smaller share of draws on a side of 0, at least 1 / (R + 1)


def matched_pairs(a: ArrayLike, b: ArrayLike) -> MatchedPairs:
    """Of errors per utterance; no difference anywhere has p = 1."""
    d: Floats = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    mean = float(d.mean())
    if len(d) < 2:
        return MatchedPairs(mean, math.nan, math.nan)
    if not d.any():
        return MatchedPairs(mean, 0.0, 1.0)
    error = float(d.std(ddof=1)) / math.sqrt(len(d))
    z = mean / error if error else math.copysign(math.inf, mean)
    return MatchedPairs(mean, z, math.erfc(abs(z) / math.sqrt(2)))


def paired_bootstrap(metric: Metric, a: Floats, b: Floats, *, resamples: int = 2000, seed: int = 0) -> Bootstrap:
    """Of statistics (U, k) of both, utterance by utterance."""
    generator, count = np.random.default_rng(seed), len(a)
    observed = metric.value(a.sum(0)) - metric.value(b.sum(0))
    drawn: list[float] = []
    step = max(1, BLOCK // count)
    while len(drawn) < resamples:
        times = generator.multinomial(count, np.full(count, 1 / count), min(step, resamples - len(drawn)))
        sums = zip(times @ a, times @ b, strict=True)
        drawn += [metric.value(one) - metric.value(other) for one, other in sums]
    drawn = [one for one in drawn if not math.isnan(one)]  # a draw of empty references alone has no error rate
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    side = min(np.mean(np.array(drawn) <= 0), np.mean(np.array(drawn) >= 0))
    return Bootstrap(observed, float(low), float(high), min(1.0, max(2 * float(side), 1 / (resamples + 1))))
