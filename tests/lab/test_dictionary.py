"""Both sides of the dictionary: the reference's table, the order on any law of masks, when it is tight."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.lab import chain, clique, ising, random_family, uniform_masks
from besag.lab.chains import spectrum
from besag.lab.chains.kernels import Blocks
from besag.lab.dictionary import dictionary

TABLE = {0.3: (6.94, 4.02, 3.28, 3.28), 1.0: (21.2, 10.2, 7.14, 7.14), 2.0: (168, 67.6, 42.5, 42.5)}


@pytest.mark.parametrize("coupling", TABLE)
def test_the_table_of_the_reference(coupling):
    family = ising(chain(4), coupling)
    found = dictionary(family)
    inverse = np.linalg.inv(family.information)
    assert found.holds
    for entry, trace in zip(found.entries, TABLE[coupling], strict=True):
        size = int(entry.masks[-1])
        scores, pi = family.scores, family.law.reshape(-1, 1)
        seen = family.information - scores.T @ (pi * Blocks(family.law, uniform_masks(4, size)).forward(scores))
        assert np.trace(np.linalg.inv(seen)) == pytest.approx(trace, rel=5e-3)
        assert np.linalg.eigvalsh(entry.poincare * inverse - np.linalg.inv(seen)).min() > -1e-9
        assert entry.worst == pytest.approx(np.linalg.eigvals(family.information @ np.linalg.inv(seen)).real.max())


def test_couplings_alone_are_loose_and_fields_make_it_tight():
    loose = dictionary(ising(chain(4), 1.5), {"k = 1": uniform_masks(4, 1)}).entries[0]
    tight = dictionary(ising(chain(4), 1.5, parameters="both"), {"k = 1": uniform_masks(4, 1)}).entries[0]
    assert loose.poincare == pytest.approx(tight.poincare)
    assert loose.seen == pytest.approx(0, abs=1e-9)
    assert loose.ratio < 0.5
    assert tight.seen > 0.95
    assert tight.ratio > 0.95


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 2))
def test_the_order_holds_on_random_systems_for_adaptive_masks_too(seed, dependence):
    family = random_family((2, 2, 3), 2, dependence, seed=seed)
    sets = [*uniform_masks(3, 1), *uniform_masks(3, 2)]
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(sets)), size=family.size).T.reshape(-1, 2, 2, 3)
    found = dictionary(family, {"one": uniform_masks(3, 1), "adaptive": dict(zip(sets, weights, strict=True))})
    assert found.holds
    assert all(entry.ratio <= 1 + 1e-7 for entry in found.entries)


def test_it_tells_itself():
    found = dictionary(ising(clique(3), 0.5))
    assert found.to_dict()["entries"][0]["masks"] == "k = 1"
    assert found.facts[0] == "Γ ⪯ C·I⁻¹ for every law of masks"
    assert found.entries[-1].poincare == pytest.approx(spectrum(Blocks(found_law(), uniform_masks(3, 3))).poincare)


def found_law():
    return ising(clique(3), 0.5).law
