"""Estimators against their formulas by hand and scipy; what every metric of every benchmark must do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.item_rows import ROWS, rows_for, suite_for_rows

import besag.evaluation.suites  # noqa: F401 (registers the benchmarks)
from besag.evaluation import metrics
from besag.evaluation.metrics import (
    Average,
    Estimator,
    Mean,
    Metric,
    Ratio,
    Statistic,
    SumStatistic,
    compare_metric,
    compare_metrics,
    credit,
    evaluate_metric,
    is_tie,
    per_group,
)
from besag.evaluation.suite import SUITES
from besag.statistics import pearson, spearman

CREDITS = {"a": [1, 1, 0.5, 0], "b": [1, 0]}
PAIRS = [{"group": name, "credit": value} for name, values in CREDITS.items() for value in values]


def of(estimator: Estimator, **options: Any) -> Metric:
    return Metric("m", estimator, "…", **options)


# ---- every benchmark


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "RESAMPLES", 200)


def test_every_benchmark_has_rows_here() -> None:
    assert ROWS.keys() == SUITES.keys()


@pytest.mark.parametrize("name", ROWS)
def test_a_value_lies_in_its_interval(name: str, few_draws: None) -> None:
    rows = rows_for(name, 1)
    for metric in suite_for_rows(name).metrics(rows):
        found = evaluate_metric(metric, rows)
        if (metric.name, metric.group) == ("NDCG", "small"):  # 6 variants have no best tenth
            assert math.isnan(found.value)
            continue
        assert found.low <= found.value <= found.high, (metric.name, metric.group)
        assert found.n > 0
        assert found.se >= 0


@pytest.mark.parametrize("name", ROWS)
def test_a_run_does_not_differ_from_itself(name: str, few_draws: None) -> None:
    rows = rows_for(name, 1)
    for metric in suite_for_rows(name).metrics(rows):
        found, alone = compare_metric(metric, rows, rows), evaluate_metric(metric, rows)
        if math.isnan(alone.value):
            assert found.n == 0 or math.isnan(found.difference)
            continue
        assert (found.a, found.b, found.n) == (alone.value, alone.value, alone.n)
        assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1), (metric.name, metric.group)


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_a_metric_does_not_use_do_not_change_it(name: str, few_draws: None) -> None:
    """They are replaced by those of another model, and the metrics are listed from the mixed rows."""
    suite, rows, other = suite_for_rows(name), rows_for(name, 1), rows_for(name, 2)
    for metric in suite.metrics(rows):
        unused = [not metric.uses(one) and not metric.uses(two) for one, two in zip(rows, other, strict=True)]
        mixed = [two if swap else one for one, two, swap in zip(rows, other, unused, strict=True)]
        [again] = [one for one in suite.metrics(mixed) if (one.name, one.group) == (metric.name, metric.group)]
        first, second = evaluate_metric(metric, rows), evaluate_metric(again, mixed)
        if metric.name.startswith("best "):  # at which temperature is chosen on the rows that it uses
            assert again.meaning == metric.meaning
        if math.isnan(first.value):
            continue
        assert first == second or (first._replace(chance=0) == second._replace(chance=0)), (metric.name, metric.group)
        found = compare_metric(metric, rows, mixed)
        assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1), (metric.name, metric.group)


@pytest.mark.parametrize("name", ROWS)
def test_a_difference_lies_in_its_interval_and_turns_with_the_runs(name: str, few_draws: None) -> None:
    suite, rows, other = suite_for_rows(name), rows_for(name, 1), rows_for(name, 2)
    ours, theirs = ({(one.name, one.group): one for one in suite.metrics(some)} for some in (rows, other))
    differ = 0
    for key in ours.keys() & theirs.keys():
        [found] = compare_metrics([(ours[key], theirs[key])], rows, other)
        [back] = compare_metrics([(theirs[key], ours[key])], other, rows)
        if math.isnan(found.difference):
            continue
        differ += found.difference != 0
        assert found.difference == found.b - found.a == -back.difference
        assert found.low <= found.difference <= found.high, key
        assert 0 < found.p <= 1
        assert (found.low, found.high) == pytest.approx((-back.high, -back.low))
    assert differ > 0


# ---- estimators


def test_an_accuracy_is_that_of_credits_and_has_ties() -> None:
    found = evaluate_metric(of(Mean(), chance=50.0, ties=is_tie, where=lambda row: row["group"] == "a"), PAIRS)
    assert found.value == 62.5
    assert found.se == pytest.approx(100 * math.sqrt(0.625 * 0.375 / 4))
    assert found.interval == pytest.approx((62.5 - 1.96 * found.se, 62.5 + 1.96 * found.se))
    assert (found.n, found.ties, found.chance) == (4, 1, 50.0)
    assert [credit(2, 1), credit(1, 1), credit(1, 2)] == [1.0, 0.5, 0.0]


def test_a_mean_over_groups_counts_each_the_same_or_by_its_size() -> None:
    a, b = (evaluate_metric(one, PAIRS).se for one in per_group(PAIRS, "group", of(Mean())))
    macro, micro = (evaluate_metric(of(Mean(over=("group",), by_size=size)), PAIRS) for size in (False, True))
    assert macro.value == pytest.approx((62.5 + 50) / 2)
    assert macro.se == pytest.approx(math.sqrt(a**2 + b**2) / 2)
    assert micro.value == pytest.approx(100 * 3.5 / 6)
    assert micro.se == pytest.approx(math.sqrt((4 * a) ** 2 + (2 * b) ** 2) / 6)
    assert macro.n == 6


def test_nested_groups_by_hand() -> None:
    """Task x: subsets of 1 and 0 → ½; task y: one subset of ¾. The mean is 62.5 %, and d moves it by its weights."""
    table = {("x", "s"): [1, 1], ("x", "t"): [0, 0, 0], ("y", "u"): [1, 1, 1, 0]}
    rows = [{"task": task, "subset": subset, "credit": value} for (task, subset), own in table.items() for value in own]
    metric = of(Mean(over=("task", "subset")))
    assert evaluate_metric(metric, rows).value == pytest.approx(62.5)
    better = [{**row, "credit": 1} if number == 2 else row for number, row in enumerate(rows)]  # the first of t
    found = compare_metric(metric, rows, better)
    assert found.difference == pytest.approx(100 / (2 * 2 * 3))
    assert (found.low, found.high) == pytest.approx((0, 100 / (2 * 2)))  # 0 to 3 of Binomial(3, 1/3)
    assert found.p == 1.0


def test_a_mean_has_the_error_of_its_sample() -> None:
    rows = [{"x": value} for value in (1.0, 2.0, 6.0)]
    metric = of(Mean("x", error="sample", scale=1.0))
    found = evaluate_metric(metric, rows)
    assert (found.value, found.n) == (3.0, 3)
    assert found.se == pytest.approx(stats.sem([1, 2, 6]))
    assert math.isnan(evaluate_metric(metric, rows[:1]).se)


def test_a_mean_of_infinite_numbers_is_not_tested() -> None:
    rows = [{"x": value} for value in (1.0, -math.inf, 2.0)]
    found = compare_metric(of(Mean("x", error="sample", scale=1.0)), rows, rows)
    assert math.isnan(found.difference)
    assert math.isnan(found.p)


def test_one_item_a_group_gives_no_interval() -> None:
    one, two = ([{"group": str(k), "credit": float(value)} for k, value in enumerate(own)] for own in ([0, 1], [1, 1]))
    found = compare_metric(of(Mean(over=("group",))), one, two)
    assert found.difference == 50.0
    assert math.isnan(found.low)


def test_a_correlation_has_a_bootstrap_interval() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=200)
    rows = [{"x": a, "y": b} for a, b in zip(x, x + draw.normal(size=200), strict=True)]
    found = evaluate_metric(of(Statistic(pearson, ("x", "y"))), rows)
    assert found.value == pytest.approx(stats.pearsonr([row["x"] for row in rows], [row["y"] for row in rows])[0])
    assert found.low < found.value < found.high
    assert found.se == pytest.approx((1 - found.value**2) / math.sqrt(200), rel=0.25)  # the large-sample formula


def test_a_difference_by_rounding_is_none() -> None:
    """A correlation does not depend on units, so a run in other units is no better, whatever the last bits are."""
    draw = np.random.default_rng(6)
    x, y = draw.normal(size=(2, 50))
    rows, scaled = ([{"x": a, "y": unit * b} for a, b in zip(x, y, strict=True)] for unit in (1.0, 0.1))
    found = compare_metric(of(Statistic(pearson, ("x", "y"))), rows, scaled)
    assert found.difference == pytest.approx(0, abs=1e-12)
    assert (found.low, found.high, found.p) == (pytest.approx(0, abs=1e-12), pytest.approx(0, abs=1e-12), 1)


def test_a_ratio_and_a_statistic_of_sums_are_the_same_number() -> None:
    draw = np.random.default_rng(3)
    rows = [{"top": float(a), "bottom": float(b)} for a, b in draw.gamma(5.0, size=(300, 2))]
    ratio = evaluate_metric(of(Ratio("top", "bottom", 100.0)), rows)
    sums = SumStatistic(lambda one: 100 * one[0] / one[1], lambda row: (row["top"], row["bottom"]))
    found = evaluate_metric(of(sums), rows)
    assert ratio.value == pytest.approx(found.value)
    assert ratio.se == pytest.approx(found.se, rel=0.1)  # the delta method and the bootstrap
    power = evaluate_metric(of(Ratio("top", "bottom", -2.0, exponential=True)), rows)
    assert power.value == pytest.approx(math.exp(-ratio.value / 50))
    assert power.se == pytest.approx(power.value * ratio.se / 50)
    assert power.low < power.value < power.high


def test_clusters_are_resampled_whole() -> None:
    """A hundred copies of an item say no more than the item."""
    draw = np.random.default_rng(4)
    rows = [{"term": str(k), "x": value} for k, value in enumerate(draw.normal(size=30))]
    metric = of(Statistic(lambda x: float(x.mean()), ("x",), unit="term"))
    few, many = (evaluate_metric(metric, some) for some in (rows, rows * 100))
    assert (many.value, many.se) == pytest.approx((few.value, few.se))
    assert few.se == pytest.approx(stats.sem([row["x"] for row in rows]), rel=0.15)


def test_an_average_leaves_out_groups_without_a_value_in_either_run() -> None:
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(2, 40))
    rows = [{"group": "ab"[k // 20], "x": x[k], "y": y[k]} for k in range(40)]
    flat = [{**row, "y": 1.0} if row["group"] == "b" else row for row in rows]  # no ranks in b
    metric = of(Average(Statistic(spearman, ("x", "y"))), unit="")
    a, b = (stats.spearmanr(x[own], y[own])[0] for own in (slice(20), slice(20, 40)))
    assert evaluate_metric(metric, rows).value == pytest.approx((a + b) / 2)
    alone = evaluate_metric(metric, flat)
    assert (alone.value, alone.n) == (pytest.approx(a), 20)
    found = compare_metric(metric, rows, flat)
    assert (found.a, found.b, found.n) == (pytest.approx(a), pytest.approx(a), 20)
    assert (found.low, found.high, found.p) == (0, 0, 1)


def test_a_metric_without_rows_has_no_value() -> None:
    metric = of(Mean(), where=lambda row: row["group"] == "c")
    assert math.isnan(evaluate_metric(metric, PAIRS).value)
    found = compare_metric(metric, PAIRS, PAIRS)
    assert found.n == 0
    assert math.isnan(found.difference)
