"""Fits by scoring, and how they scatter: within the band that theory gives."""

import numpy as np
import pytest

from besag import lab
from besag.errors import BesagError


@pytest.mark.parametrize("loss", ["block", "token"])
@pytest.mark.parametrize("draws", [1, 4])
def test_the_scatter_lies_in_its_band(loss, draws):
    spins = lab.ising(lab.chain(4), 0.5)
    found = lab.simulate(spins, lab.uniform_masks(4, 2), loss, sequences=2000, draws=draws, repeats=150, seed=2)
    low, high = found.band
    assert low < found.inflation < high
    assert not found.failed
    theory = found.theory.covariance(draws)
    assert np.allclose(found.covariance, theory, atol=4 * np.abs(theory).max() * np.sqrt(2 / 150))


def test_other_families_scatter_as_theory_says():
    for family in (lab.two_modes(4, 0.4, 0.2), lab.markov_chain(3, [[0.7, 0.3], [0.4, 0.6]])):
        found = lab.simulate(family, lab.uniform_masks(family.places, 2), "token", 4000, repeats=60)
        assert found.band[0] < found.inflation < found.band[1]


def test_masks_that_look_are_fitted_with_the_conditional_that_matches():
    spins = lab.ising(lab.chain(3), 0.5)
    equal = (spins.states[:, 0] == spins.states[:, 1]).reshape(spins.shape)
    masks = {(0, 1): np.where(equal, 0.8, 0.3), (1, 2): np.where(equal, 0.2, 0.7)}
    found = lab.simulate(spins, masks, "block", 4000, repeats=100)
    assert found.band[0] < found.inflation < found.band[1]
    assert np.abs(found.estimates.mean(0) - 0.5).max() < 0.02


def test_without_masks_left_a_fit_is_maximum_likelihood():
    spins = lab.ising(lab.chain(3), 0.5)
    counts = np.random.default_rng(0).multinomial(5000, spins.law.ravel())[None].astype(float)
    best = lab.fit(spins.at([0.0, 0.0]), {(0, 1, 2): 1.0}, counts)
    spin = 2.0 * spins.states - 1
    means = [counts[0] @ (spin[:, place] * spin[:, place + 1]) / 5000 for place in (0, 1)]
    assert best.converged
    assert best.theta == pytest.approx(np.arctanh(means), abs=1e-6)  # on a tree, E x_i x_j = tanh J


def test_data_that_are_all_alike_have_no_estimate():
    spins = lab.ising(lab.chain(2), 0.5)
    alike = np.array([[50.0, 0.0, 0.0, 50.0]])
    assert not lab.fit(spins, {(0, 1): 1.0}, alike).converged
    with pytest.raises(BesagError, match="draw more sequences"):
        lab.simulate(lab.ising(lab.chain(2), 4.0), lab.uniform_masks(2, 1), sequences=3, repeats=5)
    with pytest.raises(BesagError, match="counts have the shape"):
        lab.fit(spins, {(0, 1): 1.0}, np.ones((2, 4)))
    with pytest.raises(BesagError, match="no finite covariance"):
        lab.simulate(spins, {(0, 1): 1.0}, "token")
