"""Mixtures of products: what EM must reach, what the form can say exactly, and the steps of a sampler made of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.lab import chain, ising, random_table, two_modes
from besag.lab.heads import block_conditionals, mixture_head, mixture_heads, one_pass_step, settled, stutter


def total_correlation(law):
    product = np.ones_like(law)
    for place in range(law.ndim):
        product = product * law.sum(tuple(axis for axis in range(law.ndim) if axis != place), keepdims=True)
    return float((law * np.log(law / product)).sum()), product


@settings(max_examples=10)
@given(st.lists(st.integers(2, 3), min_size=1, max_size=4), st.integers(0, 100))
def test_one_component_is_the_product_of_the_marginals_at_the_total_correlation(shape, seed):
    law = random_table(tuple(shape), 1.0, seed).law
    head = mixture_head(law, 1)
    expected, product = total_correlation(law)
    assert head.divergence[0] == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(head.laws[0], product, atol=1e-12)


def test_two_components_solve_the_stutter_toy():
    one, two = (mixture_head(stutter(), r) for r in (1, 2))
    assert one.divergence[0] == pytest.approx(np.log(2))
    assert one.laws[0, 1, 1] == pytest.approx(0.25)  # walking walking
    assert two.divergence[0] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(two.laws[0], stutter(), atol=1e-12)
    drawn = two.draw(2000, seed=1)
    assert {tuple(pair) for pair in drawn.tolist()} == {(1, 2), (0, 1)}
    assert (drawn[:, 0] == 1).mean() == pytest.approx(0.5, abs=0.05)


def test_a_mixture_of_two_products_is_found_and_its_law_is_what_it_draws():
    law = two_modes(3, weight=0.3, flip=0.05).law
    head = mixture_head(law, 2)
    assert head.divergence[0] == pytest.approx(0, abs=1e-6)
    assert sorted(head.weights[0]) == pytest.approx([0.3, 0.7], abs=1e-2)
    q = head.laws[0]
    assert q.sum() == pytest.approx(1)
    assert head.divergence[0] == pytest.approx(float((law * np.log(law / q)).sum()), abs=1e-12)
    drawn = head.draw(40_000, seed=2)
    counts = np.bincount(np.ravel_multi_index(drawn.T, law.shape), minlength=8) / 40_000
    np.testing.assert_allclose(counts, q.ravel(), atol=0.015)


def test_many_laws_at_once_are_each_on_its_own():
    laws = np.stack([random_table((3, 3), 1.0, seed).law for seed in range(3)])
    head = mixture_heads(laws, 3, starts=8)
    assert (head.divergence < 1e-3).all()  # the rank of a table of 3 × 3
    assert (mixture_heads(laws, 2).divergence > head.divergence).all()


def test_a_chain_is_exact_given_every_other_spin():
    law = ising(chain(4), 0.8).law
    assert mixture_head(law, 4).divergence[0] < 1e-4 < mixture_head(law, 3).divergence[0]


def test_conditionals_of_a_block_are_those_of_the_law():
    law = random_table((2, 3, 2), 1.0).law
    exact, number = block_conditionals(law, [0, 2])
    assert exact.shape == (3, 2, 2)
    np.testing.assert_allclose(exact, (law / law.sum((0, 2), keepdims=True)).transpose(1, 0, 2))
    assert sorted(number.ravel()) == list(range(12))


def test_steps_that_draw_exactly_keep_the_law_and_products_do_not():
    law = ising(chain(4), 0.8).law
    blocks = [[0, 1], [1, 2], [2, 3]]
    exact, product, two = (one_pass_step(law, blocks, r) for r in (None, 1, 2))
    for steps in (exact, product, two):
        np.testing.assert_allclose(steps.sum(1), 1)
        np.testing.assert_allclose(settled(steps) @ steps, settled(steps), atol=1e-10)
    np.testing.assert_allclose(settled(exact), law.ravel(), atol=1e-10)
    np.testing.assert_allclose(two, exact, atol=1e-3)  # two spins are two components
    assert np.abs(settled(product) - law.ravel()).sum() / 2 > 0.05


def test_nonsense_is_refused():
    with pytest.raises(BesagError, match="components=0"):
        mixture_head(stutter(), 0)
    with pytest.raises(BesagError, match="sums to 2"):
        mixture_head(2 * stutter(), 1)
    with pytest.raises(BesagError, match="a law without zeros"):
        one_pass_step(stutter(), [[0]], 1)
    with pytest.raises(BesagError, match="blocks=5"):
        one_pass_step(ising(chain(3)).law, [[5]], 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("places", "components"), [(2, 2), (4, 4), (6, 8)])
def test_a_chain_is_exact_with_a_component_for_each_filling_of_every_other_place(places, components, seed):
    head = mixture_head(ising(chain(places), 1.4).law, components, starts=1, seed=seed)
    assert abs(head.divergence[0]) < 1e-9
