"""Entropy tensorisation: products, two states, bounds that hold for any density."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.chains.examples import random_law

from besag.lab import chain, ising
from besag.lab.chains import blocks, tensorisation
from besag.lab.chains.entropy import _loss, entropy_ratio


@pytest.mark.parametrize(("places", "k"), [(3, 1), (3, 2), (4, 3)])
def test_products_are_n_over_k(places, k):
    law = random_law((2,), 1)
    for seed in range(1, places):
        law = np.multiply.outer(law, random_law((2,), seed))
    found = tensorisation(law, k)
    assert found.product
    assert found.lower == pytest.approx(places / k)
    assert found.upper == pytest.approx(places / k)


def test_all_at_once_sees_all():
    found = tensorisation(random_law((2, 2), 1), 2, starts=4)
    assert found.lower == pytest.approx(1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 5))
def test_no_density_has_a_larger_ratio_than_the_bound(seed, scale):
    law = random_law((2, 2, 2), seed % 7)
    chain_ = blocks(law, 1)
    found = BOUNDS[seed % 7]
    f = np.exp(scale * np.random.default_rng(seed).normal(size=law.shape))
    assert entropy_ratio(chain_, f) <= found.lower * (1 + 1e-6) <= found.upper * (1 + 1e-6)


BOUNDS = [tensorisation(random_law((2, 2, 2), seed), 1) for seed in range(7)]


def test_the_search_may_find_more_than_variances_say():
    found = tensorisation(ising(chain(4), 0.5, [0.3, 1.0, -2.0, 0.1]), 1)
    assert found.lower > found.poincare * 1.05
    assert entropy_ratio(blocks(ising(chain(4), 0.5, [0.3, 1.0, -2.0, 0.1]), 1), found.witness) == pytest.approx(
        found.lower, rel=1e-6
    )


def test_the_gradient_is_one():
    chain_ = blocks(random_law((2, 3), 2), 1)
    g = np.random.default_rng(0).normal(size=6)
    value, gradient = _loss(g, chain_)
    for at in range(6):
        moved = g.copy()
        moved[at] += 1e-6
        assert (_loss(moved, chain_)[0] - value) / 1e-6 == pytest.approx(gradient[at], abs=1e-4)
