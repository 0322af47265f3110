"""The two losses: the reference's table, definitions by brute force, the order of the block loss, what is singular."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag import lab
from besag.errors import BesagError
from besag.lab.learning.gradients import gradients

TRACES = {  # tr Γ_k of the 4-spin chain, couplings as parameters, k = 1 … 4
    0.3: (6.94, 4.02, 3.28, 3.28),
    1.0: (21.2, 10.2, 7.14, 7.14),
    2.0: (168, 67.6, 42.5, 42.5),
}
TOKENS = {0.3: (2.12, 1.54, 1.98), 1.0: (2.97, 1.69, 1.77)}  # tr(IΓ)/d, k = 1 … 3


def three_digits(value: float) -> float:
    return float(f"{value:.3g}")


@pytest.mark.parametrize("coupling", TRACES)
def test_the_table_of_the_reference(coupling):
    spins = lab.ising(lab.chain(4), coupling)
    for size, expected in enumerate(TRACES[coupling], 1):
        found = lab.information(spins, lab.uniform_masks(4, size), "block")
        assert three_digits(np.trace(found.covariance())) == expected
        assert np.allclose(found.spread, found.hessian)  # one fresh mask: gradient covariance = Hessian


@pytest.mark.parametrize("coupling", TOKENS)
def test_more_is_not_always_better_for_tokens(coupling):
    spins = lab.ising(lab.chain(4), coupling)
    found = [lab.information(spins, lab.uniform_masks(4, size), "token") for size in (1, 2, 3, 4)]
    assert [round(one.inflation(), 2) for one in found[:3]] == pytest.approx(TOKENS[coupling])
    assert found[2].inflation() > found[1].inflation()
    assert found[3].singular
    assert found[3].rank == 0
    with pytest.raises(BesagError, match="rank 0 of 3"):
        found[3].inflation()


def brute_loss(family, masks, loss, truth):
    """E_x E_K of the loss at `family`, by plain loops over states and sets."""
    total = 0.0
    for hidden, chances in masks.items():
        chances = np.broadcast_to(chances, family.shape)
        for state in np.ndindex(*family.shape):
            weight = truth.law[state] * chances[state]
            agrees = [other for other in np.ndindex(*family.shape)
                      if all(other[p] == state[p] for p in range(len(state)) if p not in hidden)]  # fmt: skip
            joint = {other: family.law[other] * chances[other] for other in agrees}
            if loss == "block":
                total -= weight * math.log(joint[state] / sum(joint.values()))
            else:
                for place in hidden:
                    same = sum(chance for other, chance in joint.items() if other[place] == state[place])
                    total -= weight * math.log(same / sum(joint.values()))
    return total


def looking(family):
    """p(K | x) that hides place 0 more readily where it is 1, else places 1 and 2."""
    chance = np.where(family.states[:, 0] == 1, 0.7, 0.2).reshape(family.shape)
    return {(0,): chance, (1, 2): 1 - chance}


@pytest.mark.parametrize("loss", ["block", "token"])
@pytest.mark.parametrize("adaptive", [False, True])
def test_the_hessian_is_that_of_the_loss(loss, adaptive):
    family = lab.random_family((2, 3, 2), 2, seed=3)
    masks = looking(family) if adaptive else {(0, 1): 0.25, (1, 2): 0.5, (0,): 0.25}
    small, steps = 1e-3, np.eye(2)

    def height(*moves):
        return brute_loss(family.at(sum(moves, np.zeros(2))), masks, loss, family)

    hessian = np.array([[
        (height(small * a, small * b) - height(small * a, -small * b) - height(-small * a, small * b)
         + height(-small * a, -small * b)) / (4 * small**2) for a in steps] for b in steps])  # fmt: skip
    slope = [(height(small * a) - height(-small * a)) / (2 * small) for a in steps]
    assert np.allclose(slope, 0, atol=1e-6)  # the truth is where the loss is least: the conditional matches the masks
    assert np.allclose(lab.information(family, masks, loss).hessian, hessian, atol=1e-4)


@pytest.mark.parametrize("loss", ["block", "token"])
def test_the_spread_is_that_of_gradients(loss):
    family = lab.random_family((2, 2, 2), 2, seed=1)
    masks = lab.uniform_masks(3, 2)
    found = lab.information(family, masks, loss)
    spread, averaged = np.zeros((2, 2)), np.zeros((8, 2))
    for one in gradients(family, masks, loss):
        whole = sum(one.parts)
        averaged += whole / 3
        for weight, row in zip(one.weight, whole, strict=True):
            spread += weight * np.outer(row, row)
    assert np.allclose(found.spread, spread)
    assert np.allclose(found.shared, np.cov(averaged.T, aweights=family.law.ravel(), bias=True))


def test_masks_averaged_exactly_are_no_worse():
    spins = lab.ising(lab.chain(4), 1.0)
    for size in (1, 2, 3):
        for loss in ("block", "token"):
            found = lab.information(spins, lab.uniform_masks(4, size), loss)
            values = [found.inflation(masks) for masks in (1, 2, 10, math.inf)]
            assert values == sorted(values, reverse=True)
            assert found.worst() >= found.inflation() >= 1 - 1e-12


@given(
    seed=st.integers(0, 10**9),
    shape=st.lists(st.integers(2, 3), min_size=2, max_size=4),
    dependence=st.floats(0, 3),
)
@settings(max_examples=200, deadline=None)
def test_hiding_more_says_more_for_blocks(seed, shape, dependence):
    family = lab.random_family(shape, 2, dependence, seed)
    found = [lab.information(family, lab.uniform_masks(len(shape), size)).hessian for size in range(1, len(shape) + 1)]
    scale = np.trace(found[-1])
    for less, more in pairwise(found):
        assert np.linalg.eigvalsh(more - less)[0] >= -1e-10 * scale
    assert np.allclose(found[-1], family.information)


def test_bad_masks_and_losses_are_refused():
    spins = lab.ising(lab.chain(3), 0.5)
    for masks, said in [
        ({}, "give the chance of each set"),
        ({(0,): 0.5}, "sum to 0.5 and not to 1"),
        ({(): 1.0}, "at least one place"),
        ({(3,): 1.0}, "at most 2"),
        ({(0,): np.ones(3)}, "p\\(K | x\\)"),
        ({(0,): 1.5, (1,): -0.5}, "below 0"),
    ]:
        with pytest.raises(BesagError, match=said):
            lab.information(spins, masks)
    with pytest.raises(BesagError, match="'block' or 'token'"):
        lab.information(spins, lab.uniform_masks(3, 1), "blocks")
    with pytest.raises(BesagError, match="at least 1"):
        lab.information(spins, lab.uniform_masks(3, 1)).covariance(0.5)
