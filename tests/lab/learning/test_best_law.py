"""The best law of masks: the reference's value, its certificate against random laws, symmetry, what cannot be seen."""

import math

import numpy as np
import pytest

from besag import lab
from besag.errors import BesagError


def passes(masks):
    return sum(chance * len(hidden) for hidden, chance in masks.items())


def test_half_each_on_the_inner_sites():
    spins = lab.ising(lab.chain(4), 0.3)
    best = lab.best_law(spins)
    assert {hidden: round(chance, 6) for hidden, chance in best.masks.items()} == {(1,): 0.5, (2,): 0.5}
    assert round(best.value, 2) == 1.82
    assert round(lab.information(spins, lab.uniform_masks(4, 1)).inflation(), 2) == 2.12
    assert best.certified
    assert max(best.derivatives.values()) == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("coupling", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("graph", [lab.chain(4), lab.star(4), lab.clique(3)])
def test_no_law_at_the_same_cost_is_better(coupling, graph):
    spins = lab.ising(graph, coupling)
    best = lab.best_law(spins)
    assert best.certified
    assert lab.information(spins, best.masks).inflation() * passes(best.masks) == pytest.approx(best.value, rel=1e-6)
    for hidden in best.masks:  # equality where a set is hidden at all
        if best.masks[hidden] > 1e-3:
            assert best.derivatives[hidden] == pytest.approx(best.value, rel=1e-4)
    generator = np.random.default_rng(0)
    sets = list(best.derivatives)
    for _ in range(20):
        drawn = dict(zip(sets, generator.dirichlet(np.full(len(sets), 0.3)), strict=True))
        assert lab.information(spins, drawn).inflation() * passes(drawn) >= best.value * (1 - 1e-9)


def test_the_gap_bounds_what_is_missing():
    """Of any law w, φ(w) − min φ ≤ max d_K − φ(w): on the uniform one of single sites."""
    spins = lab.ising(lab.chain(4), 0.3)
    singles = lab.best_law(spins, sets=[(0,), (3,), (1, 2)])
    best = lab.best_law(spins)
    assert singles.value > best.value
    assert singles.certified  # the best of what it was given


def test_tokens_are_best_hidden_where_they_say_nothing_of_each_other():
    star = lab.best_law(lab.ising(lab.star(4), 1.0), "token", starts=5)
    assert {hidden: round(chance, 6) for hidden, chance in star.masks.items()} == {(1, 2, 3): 1.0}
    assert star.value == pytest.approx(1, abs=1e-6)  # given the centre, leaves are independent: nothing is lost
    chain = lab.best_law(lab.ising(lab.chain(4), 0.3), "token", starts=5)
    assert {hidden: round(chance, 3) for hidden, chance in chain.masks.items()} == {(0, 2): 0.5, (1, 3): 0.5}
    assert math.isnan(chain.gap)
    assert not chain.certified
    assert chain.reached == chain.starts == 5
    assert lab.information(lab.ising(lab.chain(4), 0.3), chain.masks, "token").inflation() == pytest.approx(chain.value)


def test_a_law_that_cannot_see_is_no_minimum():
    """With fields too, hiding all places at once sees the fields alone: the descent must not end there."""
    spins = lab.ising(lab.chain(3), 2.0, 0.1, "both")
    best = lab.best_law(spins, "token", starts=3)
    assert 1 <= best.value < 20
    assert lab.information(spins, best.masks, "token").inflation() == pytest.approx(best.value, rel=1e-6)


def test_what_cannot_be_weighed_is_refused():
    spins = lab.ising(lab.chain(3), 0.5)
    with pytest.raises(BesagError, match="can see all of θ"):
        lab.best_law(spins, sets=[(0,)])
    with pytest.raises(BesagError, match="different sets"):
        lab.best_law(spins, sets=[(0,), (0,)])
    with pytest.raises(BesagError, match="at most 12 places"):
        lab.best_law(lab.ising(lab.chain(13), 0.1))
