"""Intervals over seeds, against Student's by hand."""

import numpy as np
import pytest
from scipy import stats

from besag.errors import BesagError
from besag.lab.seeds import (
    STUDENT,
    against,
    balance,
    binomial,
    chi_square,
    decided,
    interval,
    ratio,
    streams,
    student,
    table,
)


def test_an_interval_is_students():
    values = [1.0, 2.0, 4.0, 9.0]
    found = interval(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert found == pytest.approx((4.0, low, high), rel=1e-3)
    assert pytest.approx([stats.t.ppf(0.975, degrees) for degrees in range(1, 12)], rel=1e-3) == STUDENT
    with pytest.raises(BesagError, match="at least two"):
        interval([1.0])


def test_ratios_go_seed_by_seed():
    one, other = np.array([2.0, 20.0]), np.array([1.0, 10.0])
    assert ratio(one, other) == pytest.approx((2, 2, 2))
    found = {("s", "a"): other[:, None], ("s", "b"): one[:, None]}
    assert against(found, "a", ("where", "which"), ["far"]) == [
        {"where": "s", "which": "b", "far": "×2.00 (2.00 to 2.00)"}
    ]
    assert [row["which"] for row in table(found, ("where", "which"), ["far"])] == ["a", "b"]


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 23, 63])
@pytest.mark.parametrize("tail", [0.025, 1e-3, 1.9e-5])
def test_quantiles_are_students(freedom, tail):
    assert student(tail, freedom) == pytest.approx(stats.t.isf(tail, freedom), rel=1e-6)


@pytest.mark.parametrize(("count", "chance"), [(48, 0.5), (200, 0.9), (192, 0.01), (48, 1e-9)])
@pytest.mark.parametrize("tail", [0.025, 2e-4])
def test_binomial_bands_are_the_narrowest_with_their_tails(count, chance, tail):
    low, high = binomial(count, chance, tail)
    known = stats.binom(count, chance)
    assert known.cdf(low - 1) <= tail < known.cdf(low)
    assert known.sf(high) <= tail < known.sf(high - 1)


@pytest.mark.parametrize(("freedom", "tail", "within"), [(2, 0.025, 0.01), (60, 2e-4, 2e-3), (600, 2e-4, 2e-4)])
def test_chi_square_is_near_its_quantiles(freedom, tail, within):
    assert chi_square(freedom, tail) == pytest.approx(stats.chi2.isf(tail, freedom), rel=within)
    if freedom > 2:
        assert chi_square(freedom, 1 - tail) == pytest.approx(stats.chi2.ppf(tail, freedom), rel=3 * within)


@pytest.mark.parametrize("pool", [True, False])
def test_a_true_claim_is_rejected_as_often_as_stated(pool):
    generator, tail, runs = np.random.default_rng(0), 0.05, 4000
    rejected = sum(bool((decided(generator.normal(size=(5, 4)), tail / 5, pool) > 1).any()) for _ in range(runs))
    assert 0.035 < rejected / runs <= 0.06  # Bonferroni: 0.05 less what coincides


def test_what_is_sure_is_decided_and_counted():
    noise = 0.1 * np.random.default_rng(0).normal(size=(2, 24))
    found = decided(noise + np.array([[1.0], [-1.0]]), 1e-3)
    assert found[0] > 1
    assert found[1] < -1
    assert "of 2 comparisons 1 are decided for the claims, 1 against" in balance([found])
    assert decided(np.array([[1.0, 1.0], [0.0, 0.0]]), 0.01).tolist() == [np.inf, 0.0]


def test_streams_of_neighbouring_seeds_share_nothing():
    assert not {*streams(0, 100)} & {*streams(1, 100)}
    assert streams(3, 5) == streams(3, 5)
