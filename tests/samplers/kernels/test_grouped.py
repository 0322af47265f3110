"""Groups drawn from one pass: a chain rule over groups, a product within; `ordered` at size 1, a known gap above."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Counting
from tests.samplers.enumerated import ADAPTIVE, FIXED, filling_law

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, empirical, follows, number, run, total_variation
from besag.samplers import kernel
from besag.samplers.kernels.ordered import ORDERS

CHAINS = 10_000


def entropy(law: np.ndarray, *axes: int) -> float:
    """Of the marginal of these axes, in nats."""
    marginal = law.sum(tuple(axis for axis in range(law.ndim) if axis not in axes)).ravel()
    return float(-(marginal[marginal > 0] * np.log(marginal[marginal > 0])).sum())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("family", ["joint", "incompatible"])
def test_two_at_a_time_have_the_enumerated_law_and_miss_the_joint(order, family):
    law = Table.random(3, 3, seed=1) if family == "joint" else Incompatible(3, 3)
    expected = filling_law(law, [3, 3, 3], order, size=2)
    one_by_one = filling_law(law, [3, 3, 3], order)
    assert total_variation(expected, one_by_one) > 0.05
    counts = empirical(kernel("grouped", size=2, order=order), law, blank(law, 3, CHAINS))
    assert follows(counts, expected)
    assert not follows(counts, one_by_one)
    if family == "joint":
        assert not follows(counts, law.log_probs.exp().numpy())


def test_what_a_group_loses_is_its_total_correlation():
    """KL(joint ‖ law) for groups {0, 1}, {2, 3}: TC(x_0, x_1) + TC(x_2, x_3 | x_0, x_1)."""
    law = Table.random(2, 4, seed=2)
    joint = law.log_probs.exp().numpy()
    loses = filling_law(law, [2] * 4, "left_to_right", size=2)
    divergence = float((joint.ravel() * np.log(joint.ravel() / loses)).sum())
    first = entropy(joint, 0) + entropy(joint, 1) - entropy(joint, 0, 1)
    second = entropy(joint, 0, 1, 2) + entropy(joint, 0, 1, 3) - entropy(joint, 0, 1) - entropy(joint, 0, 1, 2, 3)
    assert divergence == pytest.approx(first + second, abs=1e-9)
    assert divergence > 0.1
    counts = empirical(kernel("grouped", order="left_to_right"), law, blank(law, 4, CHAINS))
    assert follows(counts, loses)


def test_independent_places_lose_nothing():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    joint = np.einsum("a,b,c->abc", *rows)
    law = Table(joint)
    for size in (2, 3):
        assert follows(empirical(kernel("grouped", size=size), law, blank(law, 3, CHAINS)), joint)


def test_stutter():
    """Half the mass on "walking x", half on "x walking": drawn together, a quarter each stutters and says nothing."""
    law = Table(np.array([[0.0, 0.5], [0.5, 0.0]]), symbols=["walking", "x"])
    together = empirical(kernel("grouped", size=2), law, blank(law, 2, CHAINS))
    assert follows(together, np.full(4, 0.25))
    alone = empirical(kernel("grouped", size=1), law, blank(law, 2, CHAINS))
    assert alone[0] == alone[3] == 0
    assert follows(alone, np.array([0, 0.5, 0.5, 0]))


@given(st.integers(0, 50), st.sampled_from(ORDERS))
@settings(max_examples=20, deadline=None)
def test_groups_of_one_are_ordered_draw_for_draw(seed, order):
    law = Incompatible(3, 4, seed)
    canvas = blank(law, 4, 8, np.array([3, 3, 1, 3]))
    one, said = run(kernel("grouped", size=1, order=order), law, canvas, seed=seed)
    other, told = run(kernel("ordered", order=order), law, canvas, seed=seed)
    assert torch.equal(one.ids, other.ids)
    for a, b in zip(said, told, strict=True):
        assert torch.equal(a.more["log_prob"], b.more["log_prob"])


@pytest.mark.parametrize("order", FIXED)
def test_the_log_probs_of_the_steps_add_up_to_that_of_the_sample_under_its_own_law(order):
    law, start = Incompatible(3, 4, seed=7), [3, 3, 3, 3]
    expected = filling_law(law, start, order, size=3)
    state, told = run(kernel("grouped", size=3, order=order), law, blank(law, 4, 200))
    total = sum(info.more["log_prob"] for info in told)
    assert np.allclose(total.numpy(), np.log(expected[number(state.ids, 3)]), atol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [2, 3, 9])
def test_passes(order, size):
    law = Counting(Incompatible(2, 5))
    start = np.array([[2, 2, 2, 2, 2], [0, 2, 2, 2, 1], [0, 1, 0, 1, 0]])
    groups, canvas = kernel("grouped", size=size, order=order), blank(law, 5, 3, start)
    state, told = run(groups, law, canvas)
    spent = [-(-hides // size) for hides in (5, 3, 0)]
    assert sum(info.passes for info in told).tolist() == spent
    assert len(law.sequences) == sum(spent)
    assert len(told) == groups.steps(canvas) == spent[0]
    if order not in ADAPTIVE:
        assert law.head_rows == 8
    assert groups.done(state)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"size": 0}, "size=0: a group has at least 1 place"),
        ({"order": "leftright"}, "order='leftright': give one of"),
        ({"pick": "argmax", "top_k": 5}, "pick='argmax' takes the likeliest token, so .*top_k=5"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("grouped", **options)
