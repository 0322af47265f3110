"""Intervals that cover, p-values that are uniform where nothing differs, and both exact where they can be."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from besag.errors import BesagError
from besag.statistics import Interval, holm, intervals, pearson, ranks, sign_flips, spearman

numbers = st.floats(-100, 100)


def test_the_interval_covers_the_true_mean_as_often_as_it_says():
    """1,000 columns of 100 numbers; the share that covers is known to ±2 % (three standard errors)."""
    sample = np.random.default_rng(1).normal(loc=3.0, size=(100, 1000))
    found = intervals(sample, resamples=1000)
    covered = np.mean([low <= 3.0 <= high for _, low, high in found])
    assert covered == pytest.approx(0.95 - 0.005, abs=0.02)  # percentile intervals of 100 numbers are a little short
    at_80 = intervals(sample, resamples=1000, level=0.8)
    assert np.mean([low <= 3.0 <= high for _, low, high in at_80]) == pytest.approx(0.8, abs=0.04)


def test_texts_not_pairs_are_drawn_again():
    """20 texts whose 8 numbers are nearly one: an interval that took them for 160 texts would cover 49 %."""
    generator = np.random.default_rng(2)
    texts = generator.normal(size=(20, 500))
    sample = np.repeat(texts, 8, axis=0) + 0.01 * generator.normal(size=(160, 500))
    groups = np.repeat(np.arange(20), 8)

    def coverage(found: list[Interval]) -> float:
        return float(np.mean([low <= 0 <= high for _, low, high in found]))

    assert coverage(intervals(sample, groups, resamples=500)) > 0.88
    assert coverage(intervals(sample, resamples=500)) < 0.65


@given(arrays(np.float64, st.integers(1, 20), elements=numbers), st.integers(0, 3))
def test_the_value_is_the_mean_and_lies_between_its_ends(values, seed):
    [(value, low, high)] = intervals(values, seed=seed, resamples=200)
    assert value == pytest.approx(values.mean(), abs=1e-9)
    if len(values) == 1:
        assert math.isnan(low)
        assert math.isnan(high)
    else:
        assert values.min() - 1e-9 <= low <= high <= values.max() + 1e-9


def test_a_perplexity_is_exp_of_the_mean_at_all_three_numbers():
    values = np.random.default_rng(3).gamma(2.0, size=50)
    [plain], [perplexity] = intervals(values), intervals(values, exponential=True)
    assert tuple(perplexity) == pytest.approx(tuple(math.exp(part) for part in plain))


def test_an_infinite_number_makes_the_mean_infinite_and_no_nan():
    [(value, low, high)] = intervals([1.0, 2.0, math.inf, 3.0])
    assert (value, high) == (math.inf, math.inf)
    assert 1.0 <= low <= 3.0  # about a third of the draws leave it out


def test_many_columns_are_as_each_alone_and_the_seed_matters():
    values = np.random.default_rng(4).normal(size=(30, 3))
    together = intervals(values)
    for column, found in enumerate(together):
        assert tuple(found) == pytest.approx(tuple(intervals(values[:, column])[0]))
    assert together != intervals(values, seed=1)


@given(arrays(np.float64, st.integers(1, 7), elements=numbers))
def test_few_differences_are_tested_by_enumeration(differences):
    total = abs(differences.sum())
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    reached = [abs(np.dot(pattern, differences)) >= total - 1e-9 for pattern in patterns]
    assert sign_flips(differences)[0] == pytest.approx(np.mean(reached))


def test_a_group_is_flipped_as_one():
    """Three texts all of one sign: 2 of 8 patterns reach them, however many numbers they hold."""
    assert sign_flips([1.0, 2.0, 1.0, 3.0, 0.5, 0.5], [7, 7, 8, 8, 9, 9])[0] == pytest.approx(2 / 8)


def test_p_values_are_uniform_where_nothing_differs():
    """2,000 columns of 40 symmetric differences: each share is known to three standard errors (±3.4 % at ½)."""
    p = sign_flips(np.random.default_rng(5).standard_t(3, size=(40, 2000)), resamples=500)
    for alpha in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.mean(p <= alpha) == pytest.approx(alpha, abs=3 * math.sqrt(alpha * (1 - alpha) / 2000) + 0.004)


def test_drawn_and_enumerated_p_values_agree():
    differences = np.random.default_rng(6).normal(0.4, 1.0, size=12)
    assert sign_flips(differences, resamples=2000)[0] == pytest.approx(
        sign_flips(differences, resamples=5000)[0], abs=0.03
    )


def test_a_clear_difference_is_never_given_p_0():
    p = sign_flips(np.ones(100), resamples=999)[0]
    assert p == pytest.approx(1 / 1000)
    assert sign_flips(np.zeros(100), resamples=99)[0] == 1.0
    assert math.isnan(sign_flips([1.0, math.inf])[0])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([math.nan, 0.02]).tolist()[1] == 0.02


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_only_raises(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


def test_what_is_no_number_is_refused():
    with pytest.raises(BesagError, match="at least one number"):
        intervals([])
    with pytest.raises(BesagError, match="every one of them a number"):
        sign_flips([1.0, math.nan])
    with pytest.raises(BesagError, match=r"level .* 95"):
        intervals([1.0], level=95)


columns = st.lists(st.integers(-5, 5).map(float), min_size=3, max_size=20)


@given(columns, st.randoms(use_true_random=False))
def test_correlations_are_scipys(x: list[float], random: object) -> None:
    y = [value + random.choice([-2.0, 0.0, 1.0]) for value in x]  # type: ignore[attr-defined]
    one, two = np.array(x), np.array(y)
    np.testing.assert_array_equal(ranks(one), stats.rankdata(one))
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert math.isnan(pearson(one, two))
        assert math.isnan(spearman(one, two))
        return
    assert pearson(one, two) == pytest.approx(stats.pearsonr(one, two).statistic, abs=1e-9)
    assert spearman(one, two) == pytest.approx(stats.spearmanr(one, two).statistic, abs=1e-9)
