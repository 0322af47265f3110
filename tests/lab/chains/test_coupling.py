"""Beyond enumeration, held against it where both reach."""

import math

import numpy as np
import pytest

from besag.errors import BesagError
from besag.lab import chain, clique, cycle, grid, ising, potts
from besag.lab.chains import coalescence, gibbs, mixing_time, relaxation_seen, spectrum
from besag.lab.chains.coupling import Coalescence


def test_coalescence_is_a_bound_from_above():
    for system in (ising(chain(6), 0.5), ising(clique(6), 0.2, 0.1)):
        found = coalescence(system, pairs=300, steps=5000)
        assert found.met.all()
        assert mixing_time(gibbs(system)) <= found.upper() < 20 * mixing_time(gibbs(system))


def test_it_works_where_nothing_can_be_enumerated():
    found = coalescence(ising(grid(6, 6), 0.2), pairs=40)
    assert found.met.all()
    assert 36 < found.times.mean() < 2000


def test_pairs_that_have_not_met_are_not_left_out():
    found = coalescence(ising(clique(12), 1.0), pairs=20, steps=200)
    assert not found.met.any()
    assert (found.times == 200).all()
    assert math.isinf(found.upper())


def test_the_upper_bound_counts_its_own_uncertainty():
    sure = Coalescence(np.arange(1, 1001), np.ones(1000, bool), 10**4)
    unsure = Coalescence(np.arange(10, 1001, 10), np.ones(100, bool), 10**4)
    assert 750 < sure.upper() < 790
    assert sure.upper() < unsure.upper()


def test_what_is_seen_is_near_the_relaxation_time():
    system = ising(chain(8), 0.5)
    exact = spectrum(gibbs(system)).poincare
    found = relaxation_seen(system, chains=64, burn=500, steps=4000)
    assert 0.75 * exact < found.relaxation < 1.15 * exact
    assert found.low < found.relaxation < found.high


def test_what_has_no_order_is_refused():
    with pytest.raises(BesagError, match="only ferromagnets keep order"):
        coalescence(ising(cycle(4), -0.5))
    with pytest.raises(BesagError, match="has no spins"):
        coalescence(potts(chain(3), 3))
