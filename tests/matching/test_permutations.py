"""Assignment against all permutations; Sinkhorn against what defines it."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.matching.permutations import TOLERANCE, assignment, sinkhorn


def table(seed, n):
    return np.random.default_rng(seed).normal(scale=3.0, size=(n, n))


@given(seed=st.integers(0, 10_000), n=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_the_assignment_is_the_best_of_all(seed, n):
    energies = table(seed, n)
    found = assignment(energies)
    assert sorted(found.tolist()) == list(range(n))
    best = min(sum(energies[row, column] for row, column in enumerate(way)) for way in permutations(range(n)))
    assert energies[np.arange(n), found].sum() == pytest.approx(best, abs=1e-9)


@given(seed=st.integers(0, 1000), n=st.integers(1, 7), temperature=st.floats(0.3, 10))
@settings(max_examples=30, deadline=None)
def test_a_soft_permutation_is_doubly_stochastic_and_a_scaling_of_the_weights(seed, n, temperature):
    energies = table(seed, n)
    soft, residual = sinkhorn(energies, temperature)
    assert residual < TOLERANCE
    assert soft.sum(0) == pytest.approx(np.ones(n), abs=1e-9)
    assert soft.sum(1) == pytest.approx(np.ones(n), abs=2 * TOLERANCE)
    ratio = np.log(np.maximum(soft, 1e-300)) + energies / temperature  # log u_i + log v_j: differences of rows agree
    assert ratio - ratio[:, :1] == pytest.approx(np.tile((ratio - ratio[:, :1])[0], (n, 1)), abs=1e-5)


@given(seed=st.integers(0, 1000), n=st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_sharp_energies_are_scaled_too(seed, n):
    """Tens of nats apart, as those of sentences are: Sinkhorn's steps alone do not arrive in thousands of turns."""
    soft, residual = sinkhorn(10 * table(seed, n), 1.0)
    assert residual < TOLERANCE
    assert soft.sum(0) == pytest.approx(np.ones(n), abs=1e-9)


def test_equal_swaps_are_equally_likely():
    """Three rows of which two are alike, and columns likewise, 24 nats apart: by hand, 1/2 each within the block."""
    energies = np.array([[0.0, 24.0, 24.0], [24.0, 5.0, 5.0], [24.0, 1.0, 1.0]])
    soft, _ = sinkhorn(energies, 1.0)
    assert soft == pytest.approx(np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]), abs=1e-6)


def test_what_belongs_to_a_row_or_a_column_alone_changes_nothing():
    energies = table(1, 5)
    moved = energies + np.arange(5)[:, None] * 7 + np.arange(5) * 3
    assert (assignment(moved) == assignment(energies)).all()
    assert sinkhorn(moved, 1.0)[0] == pytest.approx(sinkhorn(energies, 1.0)[0], abs=1e-4)


def test_the_colder_the_harder():
    energies = table(2, 4)
    soft, _ = sinkhorn(energies, 0.1)
    hard = np.eye(4)[assignment(energies)]
    assert soft == pytest.approx(hard, abs=0.05)
    warm, _ = sinkhorn(energies, 1e4)
    assert warm == pytest.approx(np.full((4, 4), 0.25), abs=1e-2)


def test_two_by_two_by_hand():
    """P_11 / P_12 squared is exp of the energy that a swap costs: rows and columns cancel."""
    energies = np.array([[0.0, 2.0], [1.0, 0.5]])
    soft, _ = sinkhorn(energies, 1.0)
    gain = (energies[0, 1] + energies[1, 0]) - (energies[0, 0] + energies[1, 1])
    assert (soft[0, 0] / soft[0, 1]) ** 2 == pytest.approx(np.exp(gain), rel=1e-6)
