"""Tests of two rankings: by hand, beside scipy, and under the null."""

from __future__ import annotations

import math

import numpy as np
import pytest

from besag.rescoring.metrics import metric_named
from besag.rescoring.significance import matched_pairs, paired_bootstrap


def test_matched_pairs_by_hand() -> None:
    # d = −1, 0, −1, 0: mean −½, variance 1/3, Z = −½ / √(1/12) = −√3
    mean, z, p = matched_pairs([0, 1, 0, 1], [1, 1, 1, 1])
    assert (mean, z) == (-0.5, pytest.approx(-math.sqrt(3)))
    assert p == pytest.approx(math.erfc(math.sqrt(1.5)))
    assert matched_pairs([1, 2], [1, 2])[1:] == (0.0, 1.0)
    assert matched_pairs([0, 0], [1, 1])[1:] == (-math.inf, 0.0)
    assert math.isnan(matched_pairs([0], [1]).p)


def test_matched_pairs_beside_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(0)
    a, b = draw.poisson(1.0, 400), draw.poisson(1.2, 400)
    found = matched_pairs(a, b)
    oracle = stats.ttest_rel(a, b)  # the same statistic; t with 399 degrees of freedom is nearly normal
    assert found.z == pytest.approx(oracle.statistic)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(oracle.statistic)))


def test_p_values_are_even_under_the_null() -> None:
    draw = np.random.default_rng(1)
    p = [matched_pairs(draw.poisson(0.5, 300), draw.poisson(0.5, 300)).p for _ in range(400)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.035)


def test_the_bootstrap_of_a_difference() -> None:
    pytest.importorskip("jiwer")
    draw, metric = np.random.default_rng(2), metric_named("wer")
    words = draw.integers(5, 20, 300)
    b = np.stack([draw.poisson(1.0, 300), words], 1).astype(float)
    a = np.stack([np.maximum(b[:, 0] - draw.integers(0, 2, 300), 0), words], 1)
    found = paired_bootstrap(metric, a, b, resamples=500, seed=3)
    assert found.difference == pytest.approx(100 * (a[:, 0].sum() - b[:, 0].sum()) / words.sum())
    assert found.low < found.difference < found.high < 0
    assert found.p == 1 / 501
    delta = a[:, 0] - b[:, 0]
    se = 100 * delta.std() / math.sqrt(300) / words.mean()
    assert found.high - found.low == pytest.approx(2 * 1.96 * se, rel=0.25)
    assert paired_bootstrap(metric, a, b, resamples=500, seed=3) == found
    assert paired_bootstrap(metric, b, b, resamples=50).p == 1.0
