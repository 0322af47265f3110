"""Figures against their formulas by hand, correlations against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from besag.errors import BesagError
from besag.evaluation.figures import (
    accuracy,
    bootstrap,
    column,
    correlation,
    credit,
    groups,
    mean,
    over_groups,
)  # fmt: skip

ROWS = [
    {"group": name, "credit": value} for name, values in {"a": [1, 1, 0.5, 0], "b": [1, 0]}.items() for value in values
]


def test_an_accuracy_is_that_of_credits_and_knows_its_ties() -> None:
    found = accuracy(ROWS[:4], "…", group="a")
    assert found.value == 62.5
    assert found.se == pytest.approx(100 * math.sqrt(0.625 * 0.375 / 4))
    assert (found.n, found.ties, found.chance) == (4, 1, 50.0)
    assert [credit(2, 1), credit(1, 1), credit(1, 2)] == [1.0, 0.5, 0.0]


def test_a_mean_over_groups_counts_each_the_same_or_by_its_size() -> None:
    parts = [accuracy(own, "…", group=name) for name, own in groups(ROWS).items()]
    a, b = (one.se for one in parts)
    macro, micro = (over_groups(parts, "…", "accuracy", by_size=by_size) for by_size in (False, True))
    assert macro.value == pytest.approx((62.5 + 50) / 2)
    assert macro.se == pytest.approx(math.sqrt(a**2 + b**2) / 2)
    assert micro.value == pytest.approx(100 * 3.5 / 6)
    assert micro.se == pytest.approx(math.sqrt((4 * a) ** 2 + (2 * b) ** 2) / 6)
    assert (macro.n, macro.ties, macro.within, micro.within) == (6, 1, "group", "")
    with pytest.raises(BesagError, match="at least one group"):
        over_groups([], "…", "accuracy")


def test_a_mean_has_the_error_of_its_sample() -> None:
    rows = [{"x": value} for value in (1.0, 2.0, 6.0)]
    found = mean(rows, "x", "…", "mean", unit="nats")
    assert (found.value, found.n) == (3.0, 3)
    assert found.se == pytest.approx(stats.sem([1, 2, 6]))
    assert math.isnan(mean(rows[:1], "x", "…", "mean").se)
    low, high = found.interval
    assert (low, high) == pytest.approx((3 - 1.96 * found.se, 3 + 1.96 * found.se))


def test_a_correlation_has_a_bootstrap_interval_and_a_statistic_of_rows() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=200)
    rows = [{"x": a, "y": b} for a, b in zip(x, x + draw.normal(size=200), strict=True)]
    found = correlation(rows, "x", "y", "…", "r")
    low, high = found.interval
    assert low < found.value < high
    assert found.se == pytest.approx((1 - found.value**2) / math.sqrt(200), rel=0.25)  # the large-sample formula
    assert found.statistic is not None
    assert found.statistic(rows) == found.value
    assert found.statistic(rows[:50]) == pytest.approx(
        stats.pearsonr(column(rows[:50], "x"), column(rows[:50], "y"))[0]
    )


def test_a_bootstrap_of_a_mean_finds_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=100)
    se, low, high = bootstrap(100, lambda drawn: float(values[drawn].mean()))
    assert se == pytest.approx(stats.sem(values), rel=0.1)
    assert low < values.mean() < high
    assert all(math.isnan(one) for one in bootstrap(1, lambda drawn: 1.0))
