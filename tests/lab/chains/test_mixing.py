"""Mixing times: by powers of matrices, by the other implementation, within bounds."""

import numpy as np
import pytest
from tests.lab.chains.examples import random_law

from besag.diagnostics.mixing import exact_mixing
from besag.errors import BesagError
from besag.lab import chain, clique, ising
from besag.lab.chains import all_sites, blocks, gibbs, metropolis, mixing_bracket, mixing_time, worst_distance
from besag.lab.chains.transition import Dense

LAW = random_law((2, 3, 2), 1, 2.0)
CHAINS = [gibbs(LAW), blocks(LAW, 2), gibbs(LAW, "systematic"), metropolis(LAW), all_sites(LAW)]


@pytest.mark.parametrize("transition", CHAINS, ids=lambda one: one.name)
@pytest.mark.parametrize("epsilon", [0.25, 0.01])
def test_the_time_is_the_first_at_which_it_is_near(transition, epsilon):
    found = mixing_time(transition, epsilon)
    assert found == exact_mixing(transition.matrix, epsilon).time
    assert worst_distance(transition, found) <= epsilon < worst_distance(transition, found - 1)


def test_a_distance_to_another_law_stops_falling():
    transition = all_sites(ising(chain(3), 1.0))
    bias = 0.5 * np.abs(transition.law - transition.aim.ravel()).sum()
    assert worst_distance(transition, 10**4, transition.aim) == pytest.approx(bias, abs=1e-9)


def test_one_step_is_enough_for_a_block_of_all():
    assert mixing_time(blocks(LAW, 3)) == 1
    assert mixing_time(blocks(np.array([0.9, 0.1]), 1), 0.95) == 0


def test_bounds_hold_the_exact_time():
    transition = gibbs(ising(chain(8), 0.6))
    exact, bounds = mixing_bracket(transition), mixing_bracket(transition, exact=False)
    assert exact.exact
    assert exact.lower == exact.upper
    assert bounds.lower <= exact.lower <= bounds.upper
    assert mixing_bracket(transition, exact=False, starts=[3]).lower <= bounds.lower


def test_ten_spins_from_every_start():
    assert mixing_time(gibbs(ising(clique(10), 0.1))) > 10


def test_bad_input_is_refused():
    with pytest.raises(BesagError, match="epsilon=2"):
        mixing_time(gibbs(LAW), 2)
    with pytest.raises(BesagError, match="give a law of the 12 states"):
        worst_distance(gibbs(LAW), 3, [0.5, 0.5])
    with pytest.raises(BesagError, match="give a Transition"):
        worst_distance(LAW, 3)
    with pytest.raises(BesagError, match="starts"):
        mixing_bracket(gibbs(LAW), exact=False, starts=[99])
    with pytest.raises(BesagError, match="reducible"):
        mixing_time(Dense(np.eye(2), np.ones(2) / 2, "two", law=np.ones(2) / 2, reversible=True))
    with pytest.raises(BesagError, match="does not come within"):
        mixing_time(Dense(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2) / 2, "two"))
