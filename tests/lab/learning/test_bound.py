"""The bound: its steps by brute force, and its coverage."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag import lab
from besag.errors import BesagError
from besag.lab.learning.bound import least_conditional, tensorisation_bound

POINCARE = {0.3: (7.20, 2.98, 1.64, 1.0), 1.0: (37.4, 11.0, 3.82, 1.0), 2.0: (319, 81.7, 22.7, 1.0)}


@pytest.mark.parametrize("coupling", POINCARE)
def test_the_constant_holds_the_poincare_constant_of_the_reference(coupling):
    spins = lab.ising(lab.chain(4), coupling)
    least = spins.law.min()
    factor = math.log(1 / least - 1) / (1 - 2 * least)
    for size, expected in enumerate(POINCARE[coupling], 1):
        found = tensorisation_bound(spins, lab.uniform_masks(4, size)) / factor
        assert found == pytest.approx(expected, rel=2e-3)


@given(seed=st.integers(0, 10**9), size=st.integers(1, 3), dependence=st.floats(0, 2))
@settings(max_examples=50, deadline=None)
def test_entropy_is_tensorised_by_the_constant(seed, size, dependence):
    law = lab.random_table((2, 2, 2), dependence, seed).law
    other = np.random.default_rng(seed).dirichlet(np.ones(8)).reshape(2, 2, 2)
    masks = lab.uniform_masks(3, size)
    within = sum(
        chance * (other * np.log((other / other.sum(hidden, keepdims=True)) / (law / law.sum(hidden, keepdims=True))))
        for hidden, chance in masks.items()
    ).sum()
    assert (other * np.log(other / law)).sum() <= tensorisation_bound(law, masks) * within + 1e-12


@given(seed=st.integers(0, 10**9), size=st.integers(2, 6))
@settings(max_examples=100, deadline=None)
def test_kl_is_bounded_by_hellinger(seed, size):
    p, q = np.random.default_rng(seed).dirichlet(np.full(size, 0.5), 2) + 1e-6
    p, q = p / p.sum(), q / q.sum()
    assert (p * np.log(p / q)).sum() <= (2 + math.log((p / q).max())) * ((np.sqrt(p) - np.sqrt(q)) ** 2).sum() + 1e-12


def test_the_bound_covers_and_tightens():
    values = [lab.finite_sample_bound(n, 8, 0.05, 4) for n in (10**2, 10**4, 10**6)]
    assert values[0].value == 1.0  # says nothing
    assert values[2].fast == pytest.approx(values[1].fast / 10)  # n^−1/2
    assert values[2].slow == pytest.approx(values[1].slow / 10**0.5)  # n^−1/4
    laws = [lab.ising(lab.chain(3), coupling, parameters="coupling") for coupling in (0.1, 0.3, 0.5)]
    masks = lab.uniform_masks(3, 2)
    floor = least_conditional(laws, masks)
    constant = max(tensorisation_bound(one, masks) for one in laws)
    bound = lab.finite_sample_bound(3000, 3, floor, constant, 0.1)
    generator, misses = np.random.default_rng(0), 0
    for _ in range(100):
        counts = generator.multinomial(3000, laws[1].law.ravel()).reshape(2, 2, 2)
        losses = [-sum((counts * np.log(one.conditional(hidden))).sum() for hidden in masks) for one in laws]
        chosen = laws[int(np.argmin(losses))]
        misses += 0.5 * np.abs(chosen.law - laws[1].law).sum() > bound.value
    assert bound.value < 1
    assert misses <= 10


def test_what_is_outside_the_assumptions_is_refused():
    with pytest.raises(BesagError, match="floor"):
        lab.finite_sample_bound(100, 2, 0.0, 2.0)
    with pytest.raises(BesagError, match="tensorisation"):
        lab.finite_sample_bound(100, 2, 0.1, 0.5)
    with pytest.raises(BesagError, match="without zeros"):
        tensorisation_bound(np.array([[0.5, 0.0], [0.0, 0.5]]), lab.uniform_masks(2, 1))
    with pytest.raises(BesagError, match="cannot reach"):
        tensorisation_bound(lab.ising(lab.chain(2), 0.1), {(0,): 1.0})
