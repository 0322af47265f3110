"""Gaps: closed forms, the reference's table, Lanczos against whole spectra, orders of blocks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.chains.examples import magnetisation_law, magnetisation_matrix, random_law

from besag.errors import BesagError
from besag.lab import chain, clique, cycle, grid, ising
from besag.lab.chains import all_sites, blocks, gibbs, independent, metropolis, one_way, spectrum, tempering
from besag.lab.chains.spectrum import _lanczos
from besag.lab.chains.transition import Dense


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.1), (0.9, 0.8), (1e-6, 1e-7)])
def test_two_states(a, b):
    law = np.array([b, a]) / (a + b)
    found = spectrum(Dense(np.array([[1 - a, a], [b, 1 - b]]), law, "two", law=law, reversible=True))
    assert found.gap == pytest.approx(a + b, rel=1e-6)
    assert found.absolute_gap == pytest.approx(1 - abs(1 - a - b), rel=1e-6)


@pytest.mark.parametrize("shape", [(2, 2, 2, 2), (2, 3, 4), (5, 2)])
def test_product_measures(shape):
    generator = np.random.default_rng(0)
    law = np.ones(1)
    for width in shape:
        law = np.multiply.outer(law, generator.dirichlet(np.ones(width)))
    law = law[0]
    for k in range(1, len(shape) + 1):
        assert spectrum(blocks(law, k)).gap == pytest.approx(k / len(shape), abs=1e-12)


@pytest.mark.parametrize(("n", "coupling"), [(4, 0.1), (6, 0.3), (8, 0.5), (11, 0.15)])
def test_the_complete_graph_is_as_slow_as_its_magnetisation(n, coupling):
    """The slow mode of a ferromagnet is a function of the magnetisation, whose chain has n + 1 states."""
    law = magnetisation_law(n, coupling)
    few = spectrum(Dense(magnetisation_matrix(n, coupling), law, "magnetisation", law=law, reversible=True))
    assert spectrum(gibbs(ising(clique(n), coupling))).gap == pytest.approx(few.gap, rel=1e-8)


TABLE = {0.3: (7.20, 2.98, 1.64, 1.0), 1.0: (37.4, 11.0, 3.82, 1.0), 2.0: (319, 81.7, 22.7, 1.0)}


@pytest.mark.parametrize("coupling", TABLE)
def test_the_table_of_the_reference(coupling):
    found = [spectrum(blocks(ising(chain(4), coupling), k)).poincare for k in (1, 2, 3, 4)]
    assert [float(f"{constant:.3g}") for constant in found] == list(TABLE[coupling])


@pytest.mark.parametrize("system", [ising(chain(8), 0.4), ising(grid(3, 3), 0.2, 0.1), ising(cycle(8), 1.5)])
def test_lanczos_finds_what_the_whole_spectrum_has(system):
    for transition in (gibbs(system), blocks(system, 3)):
        whole, few = spectrum(transition), _lanczos(transition)
        assert few.gap == pytest.approx(whole.gap, rel=1e-7)
        assert abs(few.slow * whole.slow @ system.law.ravel()) == pytest.approx(1, abs=1e-5)


def test_the_slow_mode_is_an_eigenfunction_of_mean_0_and_variance_1():
    transition = gibbs(random_law((2, 3, 2), 1))
    found = spectrum(transition)
    np.testing.assert_allclose(transition.forward(found.slow), found.second * found.slow, atol=1e-10)
    assert transition.law @ found.slow == pytest.approx(0, abs=1e-10)
    assert transition.law @ found.slow**2 == pytest.approx(1)


@pytest.mark.parametrize("places", [12, 16])
def test_lanczos_on_12_and_16_spins(places):
    assert 0 < spectrum(gibbs(ising(chain(places), 0.5))).gap < 1


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(2, 2, 2), (2, 3, 2), (2, 2, 2, 2), (3, 3, 2)]), st.floats(0.1, 4))
def test_larger_blocks_never_mix_slower(seed, shape, scale):
    law = random_law(shape, seed, scale)
    constants = [spectrum(blocks(law, k)).poincare for k in range(1, len(shape) + 1)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(constants))
    assert constants[-1] == pytest.approx(1)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(2, 2, 2), (2, 3, 2), (2, 2, 2, 2)]), st.floats(0.1, 3))
def test_masking_more_tells_more_and_mixing_bounds_it(seed, shape, scale):
    """Both orders of the theory: I_{k+1} ⪰ I_k, and C_k I^{-1} ⪰ I_k^{-1}, with scores drawn at random."""
    law = random_law(shape, seed, scale)
    scores = np.random.default_rng(seed + 1).normal(size=(law.size, 3))
    pi = law.ravel()[:, None]
    scores -= (pi * scores).sum(0)
    full = scores.T @ (pi * scores)
    before = np.zeros_like(full)
    for k in range(1, len(shape) + 1):
        transition = blocks(law, k)
        seen = full - scores.T @ (pi * transition.forward(scores))  # Σ_K p_K E Var(s | x_−K)
        assert np.linalg.eigvalsh(seen - before).min() > -1e-10
        bound = spectrum(transition).poincare * np.linalg.inv(full) - np.linalg.inv(seen)
        assert np.linalg.eigvalsh(bound).min() >= -1e-7 * np.abs(bound).max() - 1e-12
        before = seen


# ---- without detailed balance


def test_a_reversible_chain_says_the_same_both_ways():
    transition = gibbs(random_law((2, 2, 2), 2))
    found, other = spectrum(transition), one_way(transition)
    assert other.eigenvalue_gap == pytest.approx(found.absolute_gap)
    assert other.singular_gap == pytest.approx(found.absolute_gap)
    np.testing.assert_allclose(other.singular_aim, [1, found.second], atol=1e-10)
    assert other.bias == pytest.approx(0, abs=1e-10)


def test_a_sweep_of_two_places_is_a_squared_correlation():
    """Of two places, λ₂ of a sweep is the squared largest correlation of functions of them."""
    law = random_law((3, 3), 1)
    rows, columns = law.sum(1), law.sum(0)
    correlation = np.linalg.svd(law / np.sqrt(np.outer(rows, columns)), compute_uv=False)[1]
    found = one_way(gibbs(law, "systematic"))
    assert found.eigenvalue_gap == pytest.approx(1 - correlation**2)
    assert found.singular_gap == pytest.approx(1 - correlation)
    assert found.bias < 1e-10


def test_a_parallel_product_has_a_law_of_its_own():
    law = ising(chain(3), 1.0)
    for transition in (all_sites(law), independent(law, 2)):
        found = one_way(transition)
        assert found.bias > 0.05
        assert found.divergence > 0
        assert found.singular_aim[0] > 1 + 1e-6
    np.testing.assert_allclose(one_way(independent(np.full((2, 2, 2), 1 / 8), 2)).singular_aim[0], 1)


def test_a_ladder_is_over_more_states_than_its_law():
    found = one_way(tempering(random_law((2, 2), 1), 2))
    assert 0 < found.singular_gap <= 1
    assert np.isnan(found.bias)


# ---- what is refused


def test_a_chain_without_detailed_balance_is_sent_on():
    with pytest.raises(BesagError, match="`one_way`"):
        spectrum(gibbs(random_law((2, 2), 0), "systematic"))
    wrong = Dense(np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.ones(3) / 3, "circle", reversible=True)
    with pytest.raises(BesagError, match="meets no detailed balance with its law"):
        spectrum(wrong)


def test_a_chain_that_falls_apart_is_refused():
    law = np.array([0.5, 0.5])
    with pytest.raises(BesagError, match="reducible"):
        spectrum(Dense(np.eye(2), law, "two", law=law, reversible=True))
    with pytest.raises(BesagError, match="too small for float64"):
        spectrum(gibbs(ising(clique(6), 4.0)))
    with pytest.raises(BesagError, match="reducible"):
        one_way(Dense(np.eye(2), law, "two"))


def test_metropolis_has_a_spectrum():
    found = spectrum(metropolis(random_law((2, 2, 2), 1)))
    assert 0 < found.absolute_gap <= found.gap
