"""Noisy conditionals, and the joints that constructions make of them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.joints import CONSTRUCTIONS, construction
from besag.lab.noise import BLOCKS, NoisyConditionals, divergence, divergences, joint_of
from besag.lab.systems.random import random_table

LAW = random_table((3, 4), 1.0, seed=3).law
CUBE = random_table((3, 2, 4), 1.0, seed=3).law


def test_noise_is_drawn_once_normalised_and_of_the_size_it_says():
    made = NoisyConditionals(random_table((60, 50), 1.0).law, 0.3, seed=1)
    for place, log_c in enumerate(made.each()):
        np.testing.assert_allclose(np.exp(log_c).sum(place), 1)
        assert made.each()[place] is log_c
        truth = made.law / made.law.sum(place, keepdims=True)
        error = log_c - np.log(truth)
        error -= error.mean(place, keepdims=True)  # what normalising added is the same in a context
        assert error.std() == pytest.approx(0.3, rel=0.05)
    np.testing.assert_array_equal(NoisyConditionals(made.law, 0.3, seed=1).each()[1], made.each()[1])


def test_counts_are_those_of_draws_in_every_context():
    law = random_table((6, 300), 1.0).law
    made = NoisyConditionals(law, 0.1, seed=1, error="counts")
    [log_a, log_b] = made.each()
    truth = law / law.sum(0)
    counts = np.exp(log_a) * (600 + 3) - 0.5  # six symbols, 6/σ² draws
    np.testing.assert_allclose(counts, counts.round(), atol=1e-6)
    np.testing.assert_allclose(counts.sum(0), 600)
    error = (counts / 600 - truth) / np.sqrt(truth * (1 - truth) / 600)
    assert error.std() == pytest.approx(1, abs=0.06)
    np.testing.assert_allclose(np.exp(log_b).sum(1), 1)
    clean = NoisyConditionals(law, 0.0, error="counts").each()[0]
    np.testing.assert_allclose(np.exp(clean), truth)


def test_a_pair_is_what_constructions_look_at():
    made = NoisyConditionals(LAW, 0.5, seed=2)
    pair = made.pair()
    np.testing.assert_allclose(pair.log_a, made.each()[0])
    np.testing.assert_allclose(pair.log_b, made.each()[1])
    np.testing.assert_allclose(pair.hidden_a, made.given(0, set()).ravel())
    for method in CONSTRUCTIONS:
        q = joint_of(made, method)
        assert q.sum() == pytest.approx(1)
        if method not in ("ag", "stationary"):
            np.testing.assert_allclose(q, construction(method).build(pair).law.cells(pair).exp())


@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_without_noise_exact_constructions_give_back_the_law(seed):
    for shape in ((3, 4), (2, 3, 2)):
        law = random_table(shape, 1.0, seed).law
        names = [name for name in (CONSTRUCTIONS if law.ndim == 2 else BLOCKS) if CONSTRUCTIONS[name].exact]
        assert np.abs(divergences(law, 0.0, names, [0])).max() < 1e-8


def test_blocks_are_their_definitions():
    made = NoisyConditionals(CUBE, 0.5, seed=4)
    tables = [np.exp(log_c) for log_c in made.each()]
    product = tables[0] * tables[1] * tables[2]
    np.testing.assert_allclose(joint_of(made, "mrf_local"), product / product.sum())
    q = joint_of(made, "stationary")
    np.testing.assert_allclose(sum(c * q.sum(i, keepdims=True) for i, c in enumerate(tables)) / 3, q, atol=1e-12)
    p = joint_of(made, "ag")
    np.testing.assert_allclose(p * sum(1 / p.sum(i, keepdims=True) for i in range(3)), sum(tables), rtol=1e-4)
    chains = [
        np.exp(made.given(a, set()) + made.given(b, {a}) + made.given(c, {a, b})) for a, b, c in permutations(range(3))
    ]
    np.testing.assert_allclose(joint_of(made, "order"), sum(chains) / 6)
    for chain in chains:
        assert chain.sum() == pytest.approx(1)
    other = joint_of(made, "loglinear") * np.exp(0.1 * np.random.default_rng(0).normal(size=CUBE.shape))
    assert _misfit(joint_of(made, "loglinear"), made) < _misfit(other, made)


def _misfit(q, made):
    """Σ_i of the squares that no α_i(x_−i) removes."""
    rests = [log_c - np.log(q) for log_c in made.each()]
    return sum(np.square(rest - rest.mean(i, keepdims=True)).sum() for i, rest in enumerate(rests))


def test_divergence_is_kl():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.0])
    assert divergence(p, q) == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3))
    assert divergence(q, np.array([1.0, 0.0, 0.0])) == np.inf


def test_nonsense_is_refused():
    with pytest.raises(BesagError, match="a law without zeros"):
        NoisyConditionals(np.diag([0.5, 0.5]), 0.1)
    with pytest.raises(BesagError, match="noise=-1"):
        NoisyConditionals(LAW, -1)
    with pytest.raises(BesagError, match="two places or more"):
        NoisyConditionals(np.array([0.5, 0.5]), 0.1)
    with pytest.raises(BesagError, match=r"3 places have a joint by order, .* not by 'hcb'"):
        joint_of(NoisyConditionals(CUBE, 0.1), "hcb")
    with pytest.raises(BesagError, match="a pair has two places, and this law has 3"):
        NoisyConditionals(CUBE, 0.1).pair()
    with pytest.raises(BesagError, match="do not compare"):
        divergence(LAW, CUBE)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_independent_of_a_law_drawn_from_the_same_seed(seed):
    law = random_table((40, 40), 2.0, seed).law
    for place, log_c in enumerate(NoisyConditionals(law, 0.4, seed).each()):
        centred = []
        for values in (log_c - np.log(law), np.log(law)):
            within = values - values.mean(place, keepdims=True)
            centred.append((within - within.mean(1 - place, keepdims=True)).ravel())
        assert abs(np.corrcoef(*centred)[0, 1]) < 4 / 40  # was 1 at the first position: four standard errors
