"""Every kernel's matrix: against plain loops, against besag's own kernels as they run, against known laws."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.chains.examples import random_law, spins
from tests.samplers.enumerated import energy_law, move_matrix

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab import chain, ising, uniform_masks
from besag.lab.chains import all_sites, blocks, gibbs, independent, metropolis, tempering
from besag.lab.chains.kernels import tempered
from besag.lab.oracles import blank, check_kernel, follows, number, run, sequences
from besag.samplers import kernel

LAW = random_law((2, 2, 2), 3)
WIDE = random_law((3, 3), 4)
SUBSETS = {  # |K| uniform, K uniform given its size
    places: share / 3 for size in (1, 2, 3) for places, share in uniform_masks(3, size).items()
}


def by_loops(law, masks, rule):
    """(S, S) each row from the definition: a mask, then what stands there."""
    states = list(product(*map(range, law.shape)))
    matrix = np.zeros((law.size, law.size))
    for at, x in enumerate(states):
        for places, weight in masks.items():
            share = weight[x] if isinstance(weight, np.ndarray) else weight
            same = [y for y in states if all(y[i] == x[i] for i in range(law.ndim) if i not in places)]
            chances = rule(law, places, weight, same)
            for y, chance in zip(same, chances, strict=True):
                matrix[at, states.index(y)] += share * chance
    return matrix


def from_conditional(law, places, weight, same):
    mass = np.array([law[y] * (weight[y] if isinstance(weight, np.ndarray) else 1) for y in same])
    return mass / mass.sum() if mass.sum() else np.zeros(len(same))


def from_product(law, places, weight, same):
    mass = np.array([law[y] for y in same])
    rows = [
        {v: sum(m for m, y in zip(mass, same, strict=True) if y[i] == v) / mass.sum() for v in range(law.shape[i])}
        for i in places
    ]
    return [np.prod([row[y[i]] for row, i in zip(rows, places, strict=True)]) for y in same]


def adaptive_masks(law, seed=0):
    """p(K | x) over all sets of two."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(3), size=law.size).T.reshape(3, *law.shape)
    return dict(zip(uniform_masks(3, 2), weights, strict=True))


@pytest.mark.parametrize("masks", [uniform_masks(3, 1), uniform_masks(3, 2), SUBSETS, adaptive_masks(LAW)])
def test_blocks_are_their_definition(masks):
    np.testing.assert_allclose(blocks(LAW, masks).matrix, by_loops(LAW, masks, from_conditional), atol=1e-12)


@pytest.mark.parametrize("masks", [uniform_masks(3, 2), SUBSETS])
def test_independent_blocks_are_their_definition(masks):
    np.testing.assert_allclose(independent(LAW, masks).matrix, by_loops(LAW, masks, from_product), atol=1e-12)


def test_a_sweep_is_all_places_in_turn():
    singles = [by_loops(LAW, {(place,): 1.0}, from_conditional) for place in range(3)]
    np.testing.assert_allclose(gibbs(LAW, "systematic").matrix, singles[0] @ singles[1] @ singles[2], atol=1e-12)


def test_all_sites_is_a_product_of_conditionals():
    matrix = all_sites(WIDE).matrix
    first, second = WIDE / WIDE.sum(0), WIDE / WIDE.sum(1, keepdims=True)
    for (a, b), (c, d) in product(product(range(3), repeat=2), repeat=2):
        assert matrix[3 * a + b, 3 * c + d] == pytest.approx(first[c, b] * second[a, d])


def test_a_block_of_one_is_the_same_in_parallel():
    np.testing.assert_allclose(independent(LAW, 1).matrix, gibbs(LAW).matrix, atol=1e-12)


# ---- as besag's kernels run

REAL = {
    "gibbs": ("gibbs", {}, gibbs(LAW), 1),
    "a sweep": ("gibbs", {"scan": "systematic"}, gibbs(LAW, "systematic"), 3),
    "subsets at once": ("gibbs", {"scan": "subset"}, independent(LAW, SUBSETS), 1),
    "blocks": ("block_gibbs", {"size": 2}, blocks(LAW, 2), 1),
    "neighbours": ("block_gibbs", {"size": 2, "where": "adjacent"}, blocks(LAW, {(0, 1): 0.5, (1, 2): 0.5}), 1),
    "in parallel": ("block_gibbs", {"size": 2, "inner": "independent"}, independent(LAW, 2), 1),
    "metropolis": ("metropolis", {}, metropolis(LAW), 1),
    "metropolis, raw and hot": (
        "metropolis",
        {"energy": "raw", "energy_temperature": 2.0, "temperature": 1.5},
        metropolis(LAW, "raw", 2.0, temperature=1.5),
        1,
    ),
    "metropolis, blocks": ("metropolis", {"move": "block"}, metropolis(LAW, move="block"), 1),
    "metropolis, neighbours": ("metropolis", {"move": "adjacent"}, metropolis(LAW, move="adjacent"), 1),
}


@pytest.mark.parametrize("name", REAL)
def test_the_matrix_is_what_the_kernel_does(name):
    which, options, transition, steps = REAL[name]
    assert check_kernel(kernel(which, **options), LAW, transition, steps, chains=3000).holds


@pytest.mark.parametrize("rungs", [2, 3])
def test_a_ladder_is_what_the_kernel_does(rungs):
    law, chains = random_law((2, 2), 5, 1.5), 20_000
    transition = tempering(law, rungs, 3.0)
    kernel_ = kernel("tempering", rungs=rungs, hottest=3.0)
    table = Table(law)
    for start in (0, 2):
        state, _ = run(kernel_, table, blank(table, 2, chains, sequences(2, 2)[start]), 1 if rungs == 2 else 2)
        every = np.concatenate([state.ids[:, None].numpy(), state.hotter.numpy()], 1)  # (C, K, L)
        seen = number(every.reshape(chains, -1), 2)
        at = sum(start * 4**rung for rung in range(rungs))  # all rungs begin alike
        assert follows(np.bincount(seen, minlength=4**rungs), transition.matrix[at])


def test_metropolis_is_its_definition_on_plain_loops():
    table = Table(LAW)
    target = energy_law(table, 3, "norm")
    chain_ = metropolis(LAW, move="block")
    np.testing.assert_allclose(chain_.law, target, atol=1e-12)
    np.testing.assert_allclose(chain_.matrix, move_matrix(table, 3, "block", target), atol=1e-12)
    np.testing.assert_allclose(chain_.law @ chain_.matrix, chain_.law, atol=1e-12)


def test_a_ladder_keeps_the_product_of_its_laws():
    law = random_law((2, 2), 6)
    ladder = tempering(law, 3, 4.0)
    np.testing.assert_allclose(ladder.law @ ladder.matrix, ladder.law, atol=1e-12)
    cold = ladder.law.reshape(4, -1).sum(1)
    np.testing.assert_allclose(cold, tempered(law, "norm", 1.0), atol=1e-12)


# ---- known laws


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_all_spins_at_once_keep_their_known_law(seed, n):
    generator = np.random.default_rng(seed)
    couplings = np.triu(generator.normal(size=(n, n)), 1)
    couplings, fields = couplings + couplings.T, generator.normal(size=n)
    x = spins(n)
    energy = 0.5 * ((x @ couplings) * x).sum(1) + x @ fields
    law = np.exp(energy - energy.max())
    transition = all_sites((law / law.sum()).reshape((2,) * n))
    known = np.exp(x @ fields) * np.cosh(fields + x @ couplings).prod(1)
    known /= known.sum()
    np.testing.assert_allclose(transition.law, known, atol=1e-9)
    flow = known[:, None] * transition.matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(2, 2, 2), (2, 3), (3, 2, 2), (2, 2, 2, 2)]))
def test_adaptive_blocks_keep_the_law_in_detailed_balance(seed, shape):
    law = random_law(shape, seed)
    sets = list(uniform_masks(len(shape), 2)) + list(uniform_masks(len(shape), 1))
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(sets)), size=law.size).T.reshape(-1, *shape)
    matrix = blocks(law, dict(zip(sets, weights, strict=True))).matrix
    flow = law.ravel()[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)


# ---- what is refused


def test_zeros_and_sums_are_refused():
    with pytest.raises(BesagError, match="2 of 4 states have probability 0"):
        gibbs([[0.5, 0.0], [0.0, 0.5]])
    with pytest.raises(BesagError, match="not to 1"):
        blocks([[0.5, 0.1], [0.1, 0.5]], 1)


def test_a_place_that_is_never_hidden_is_refused():
    with pytest.raises(BesagError, match=r"places \[1, 2\] are in no mask, so the chain is reducible"):
        blocks(LAW, {(0,): 1.0, (1, 2): 0.0})


def test_a_ladder_that_does_not_climb_is_refused():
    with pytest.raises(BesagError, match=r"hottest=0\.5: the ladder climbs"):
        tempering(LAW, 2, 0.5)
    with pytest.raises(BesagError, match="energy_temperature=0"):
        metropolis(LAW, energy_temperature=0)


def test_what_is_too_large_is_refused():
    with pytest.raises(BesagError, match="up to 4,096"):
        all_sites(ising(chain(13), 0.1))
    with pytest.raises(BesagError, match=r"a ladder of 3 on 64 states .* 16 states are the most"):
        tempering(ising(chain(6), 0.1), 3)
    with pytest.raises(BesagError, match="does not know why"):
        independent(LAW, adaptive_masks(LAW))
