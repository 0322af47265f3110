import itertools

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.masks.example_passages import plain, repeated

from besag.errors import BesagError
from besag.masks import law, rate_named


def sets(hidden: np.ndarray) -> np.ndarray:
    """How often each of the subsets of n places came, by its number in binary."""
    return np.bincount(hidden.reshape(-1, 5) @ (1 << np.arange(5)), minlength=32)


def test_with_a_budget_every_set_of_that_size_is_equally_likely():
    hidden = law("uniform").choose(repeated(plain(5), 5000), np.full(5000, 0.4), 0.0, seed=1)
    pairs = [(1 << a) + (1 << b) for a, b in itertools.combinations(range(5), 2)]
    counts = sets(hidden)
    assert counts.sum() == counts[pairs].sum()
    assert chisquare(counts[pairs]).pvalue > 1e-3


def test_rounded_up_under_uniform_rates_every_number_is_as_likely():
    """Mask-Predict: the number of hidden tokens is uniform from 1 to n."""
    rate = rate_named("uniform", 0.5).at(0.0, np.arange(20_000), seed=3)
    hidden = law("uniform", count="up").choose(repeated(plain(5), 20_000), rate, 0.0, seed=1)
    size = np.array([bin(number).count("1") for number in range(32)])
    counts = np.bincount(size, weights=sets(hidden), minlength=6)
    assert counts[0] == 0
    np.testing.assert_allclose(counts[1:], 4000, rtol=0.01)  # rates lie evenly, from a thousandth on


def test_without_one_every_token_is_hidden_by_itself():
    hidden = law("uniform", count="bernoulli").choose(repeated(plain(5), 20_000), np.full(20_000, 0.4), 0.0, seed=1)
    size = np.array([bin(number).count("1") for number in range(32)])
    assert chisquare(sets(hidden), 20_000 * 0.4**size * 0.6 ** (5 - size)).pvalue > 1e-3


def test_other_counts_are_refused():
    with pytest.raises(BesagError, match="Did you mean 'bernoulli'"):
        law("uniform", count="bernouli")
