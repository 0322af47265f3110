import numpy as np
import pytest
from scipy import stats

from besag.errors import BesagError
from besag.masks import rate_named
from besag.masks.rates import Beta, Constant, Cosine, Linear, Uniform, spread

ROWS = np.arange(3)


def along(rate, *progress):
    return [rate.at(at, ROWS, 0)[1] for at in progress]


def test_rates_move_as_they_say():
    assert along(Constant(0.4), 0, 0.5, 1) == [0.4] * 3
    assert along(Linear(0.4, 0.2), 0, 0.25, 1) == pytest.approx([0.4, 0.35, 0.2])
    assert along(Linear(0.4, 0.2, hold=0.5), 0.3, 0.5, 0.75, 1) == pytest.approx([0.4, 0.4, 0.3, 0.2])
    assert along(Cosine(0.4, 0.2), 0, 0.25, 0.5, 1) == pytest.approx([0.4, 0.3 + 0.1 * np.sqrt(0.5), 0.3, 0.2])


def test_the_masking_ratio_decay_is_a_cosine():
    p, run = 0.15, np.linspace(0, 1, 9)
    assert along(Cosine(2 * p + 0.02, 0.02), *run) == pytest.approx(p * (1 + np.cos(np.pi * run)) + 0.02)


@pytest.mark.parametrize("first", [0, 977, 2**32 - 40])
@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_any_batch_of_consecutive_draws_is_stratified(first, seed):
    """Discrepancy: how far the share below x is from x, at worst. Independent draws would be about 0.15 off."""
    u = np.sort(spread(np.arange(first, first + 32) % 2**32, seed))
    assert ((u > 0) & (u < 1)).all()
    assert np.abs(u - (np.arange(32) + 0.5) / 32).max() < 0.06


def test_each_draw_alone_is_uniform_over_seeds():
    u = np.array([spread(np.array([5]), seed)[0] for seed in range(2000)])
    assert stats.kstest(u, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("a", "b"), [(2.5, 2.5), (0.5, 0.5), (1, 3), (8, 2)])
def test_beta_rates_follow_the_beta_law(a, b):
    rates = Beta(a, b).at(0.0, np.arange(20_000), seed=0)
    assert ((rates > 0) & (rates <= 1)).all()
    at = np.linspace(0.001, 1, 500)
    assert np.abs((rates[:, None] <= at).mean(0) - stats.beta(a, b).cdf(at)).max() < 0.001


def test_uniform_rates_cover_their_range():
    rates = Uniform(0.2, 0.6).at(0.0, np.arange(10_000), seed=3)
    assert stats.kstest(rates, stats.uniform(0.2, 0.4).cdf).statistic < 0.001


def test_rates_are_found_by_name():
    assert rate_named("constant", 0.3) == Constant(0.3)
    assert rate_named("linear", 0.4, 0.15, 0.1) == Linear(0.4, 0.15, 0.1)
    assert rate_named("cosine", 0.4, 0.15) == Cosine(0.4, 0.15)
    assert rate_named("beta", 0.3) == Beta()
    assert rate_named("uniform", 0.3) == Uniform()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cosin", 0.3), "Did you mean 'cosine'"),
        (("constant", 15), "0.3 for 30 %"),
        (("constant", 0), "above 0"),
        (("linear", 0.3), "needs end_rate"),
        (("constant", 0.3, 0.1), "does not move"),
        (("uniform", 0.3, None, 0.5), "does not move"),
        (("linear", 0.3, 0.1, 1.0), "hold is 1.0"),
        (("linear", 0.3, -0.1), "end is -0.1"),
    ],
)
def test_wrong_rates_are_refused(arguments, said):
    with pytest.raises(BesagError, match=said):
        rate_named(*arguments)
    with pytest.raises(BesagError, match="at least 0\\.5"):
        Beta(0.1, 1)
