"""Every system: its law sums to one, its scores are the slopes of its log-law, its conditionals are ratios of sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import besag
from besag import lab
from besag.errors import BesagError

FAMILIES = {
    "couplings": lab.ising(lab.chain(4), [0.3, -0.2, 1.0], 0.1),
    "both": lab.ising(lab.grid(2, 2), 0.4, [0.1, 0.0, -0.3, 0.2], "both"),
    "fields": lab.ising(lab.star(4), 0.4, 0.2, "fields"),
    "one coupling": lab.ising(lab.clique(4), 0.2, 0.2, "coupling"),
    "potts": lab.potts(lab.cycle(3), 3, 0.7, np.arange(6).reshape(3, 2) / 10, "both"),
    "modes": lab.two_modes(4, 0.3, 0.2),
    "markov": lab.markov_chain(3, [[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], [0.2, 0.3, 0.5]),
    "random": lab.random_family((2, 3, 2), 4),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_are_the_slopes_of_the_log_law(name):
    family, small = FAMILIES[name], 1e-5
    slopes = [
        np.log(family.at(family.theta + step).law / family.at(family.theta - step).law).ravel() / (2 * small)
        for step in small * np.eye(len(family.theta))
    ]
    assert family.law.sum() == pytest.approx(1)
    assert np.allclose(np.stack(slopes, 1), family.scores, atol=1e-7)
    assert np.allclose(family.law.ravel() @ family.scores, 0, atol=1e-12)
    assert len(family.parameters) == len(family.theta) == len(family.information)


@pytest.mark.parametrize("name", FAMILIES)
def test_conditionals_are_ratios_of_sums(name):
    family = FAMILIES[name]
    hidden = [0, 2]
    answer = family.conditional(hidden)
    for state, chance in zip(family.states, answer.ravel(), strict=True):
        agrees = (family.states == state)[:, [place for place in range(family.places) if place not in hidden]].all(1)
        assert chance == pytest.approx(family.law[tuple(state)] / family.law.ravel()[agrees].sum())


def test_the_law_of_spins_is_the_one_of_the_definition():
    edges, fields = {(0, 1): 0.3, (1, 2): -0.5}, [0.1, 0.0, 0.2]
    system = lab.ising(lab.chain(3), list(edges.values()), fields)
    weight = np.zeros((2, 2, 2))
    for state in np.ndindex(2, 2, 2):
        spin = 2 * np.array(state) - 1
        weight[state] = np.exp(sum(J * spin[i] * spin[j] for (i, j), J in edges.items()) + fields @ spin)
    assert np.allclose(system.law, weight / weight.sum())
    answers = system.conditionals()
    assert np.allclose(answers.table().log_probs.exp().numpy(), system.law)


@pytest.mark.parametrize("name", ["both", "potts"])
def test_local_conditionals_need_no_enumeration(name):
    family = FAMILIES[name]
    for place in range(family.places):
        local = np.take_along_axis(family.local(family.states, place), family.states[:, [place]], 1)[:, 0]
        assert np.allclose(local, family.conditional([place]).ravel())
    wide = lab.ising(lab.grid(20, 20), 0.4)
    assert wide.local(np.ones((3, 400), dtype=int), 21).shape == (3, 2)


@pytest.mark.parametrize("name", ["both", "potts"])
def test_blocks_need_no_enumeration_but_their_own(name):
    family = FAMILIES[name]
    for hidden in ([0], [0, 1], [0, 2], list(range(family.places))):
        found = family.block(family.states, reversed(hidden))
        own = found[(np.arange(len(found)), *family.states[:, hidden].T)]
        assert np.allclose(own, family.conditional(hidden).ravel())
        assert np.allclose(found.reshape(len(found), -1).sum(1), 1)


def test_a_block_of_many_spins_is_the_one_of_the_definition():
    wide, hidden = lab.ising(lab.grid(20, 20), 0.4, 0.1), [0, 1, 20, 399]
    state = np.random.default_rng(0).integers(0, 2, (1, 400))
    found = wide.block(state, hidden)[0]
    fillings = np.repeat(state, 16, 0)
    fillings[:, hidden] = list(np.ndindex(2, 2, 2, 2))
    spin = 2 * fillings - 1
    energy = sum(0.4 * spin[:, one] * spin[:, other] for one, other in wide.graph.edges) + 0.1 * spin.sum(1)
    weight = np.exp(energy - energy.max())
    assert np.allclose(found.ravel(), weight / weight.sum())
    with pytest.raises(BesagError, match="16 places of 2 symbols are the largest"):
        wide.block(state, range(17))


def test_every_verb_runs_on_a_system():
    lm = besag.load(lab.table(lab.random_table((3, 3)).law, symbols=["a", "b", "c"]).conditionals())
    assert float(lm.score("a b", method="chain").total) == pytest.approx(np.log(lab.random_table((3, 3)).law[0, 1]))


@given(seed=st.integers(0, 10**6), places=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_without_dependence_a_random_table_is_a_product(seed, places):
    system = lab.random_table((3,) * places, dependence=0.0, seed=seed)
    product = np.ones(())
    for place in range(places):
        product = np.multiply.outer(product, system.marginal([place]))
    assert np.allclose(product, system.law)
    assert not np.allclose(lab.random_table((3, 3), 1.0, seed).law, lab.random_table((3, 3), 0.0, seed).law)


def test_draws_follow_the_law():
    system = lab.random_table((2, 3))
    drawn = system.draw(60_000, seed=1)
    seen = np.bincount(np.ravel_multi_index(drawn.T, system.shape), minlength=6) / len(drawn)
    assert np.allclose(seen, system.law.ravel(), atol=0.01)


BAD = {
    "sums to 2": lambda: lab.table([[1.0, 0.0], [0.0, 1.0]]),
    "negative": lambda: lab.table([[1.5, -0.5]]),
    "missing": lambda: lab.table([[np.nan, 1.0]]),
    "one axis a place": lambda: lab.table(1.0),
    "probability 0, so nothing": lambda: lab.table([[1.0, 0.0], [0.0, 0.0]]).conditional([0]),
    "16 places of 2 symbols": lambda: lab.ising(lab.chain(17)).law,
    "10 places of 3 symbols": lambda: lab.potts(lab.chain(11), 3).scores,
    "3 finite parameters": lambda: lab.ising(lab.chain(4)).at([1.0]),
    "named twice": lambda: lab.ising(lab.chain(4)).conditional([1, 1]),
    "at most 3": lambda: lab.ising(lab.chain(4)).conditional([4]),
    "give one number, or 3": lambda: lab.ising(lab.chain(4), [1.0, 2.0]),
    "all edges share one": lambda: lab.ising(lab.chain(3), [1.0, 2.0], parameters="coupling"),
    "no couplings": lambda: lab.ising(lab.chain(1)),
    "not coupled to itself": lambda: lab.Graph(2, ((1, 1),)),
    "pair of places": lambda: lab.Graph(2, ((1,),)),
    "above 0": lambda: lab.markov_chain(3, [[1.0, 0.0], [0.5, 0.5]]),
    "not all to 1": lambda: lab.markov_chain(3, [[0.5, 0.6], [0.5, 0.5]]),
    "flip=0": lambda: lab.two_modes(3, flip=0.0),
    "must be finite": lambda: lab.potts(lab.chain(2), 2, 1.0, [[0.0], [float("inf")]]),
    "an axis a place": lambda: lab.Exponential([1.0, 2.0]),
}


@pytest.mark.parametrize("said", BAD)
def test_what_is_no_system_is_refused(said):
    with pytest.raises(BesagError) as wrong:
        BAD[said]()
    assert said.replace("sums to 2", "sums to 2 and not to 1") in str(wrong.value)
