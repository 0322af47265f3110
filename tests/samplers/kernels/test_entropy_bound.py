"""As many places as a bound allows: the joint at bound 0, a known law above, and never more lost than was allowed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from tests.samplers.enumerated import entropy, total_correlation

from besag.conditionals.ising import Ising
from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, empirical, follows, number, run, total_variation
from besag.samplers import (
    entropy_bound,  # noqa: F401 (registers itself)
    kernel,
)

CHAINS = 10_000


# ---- the definition, as plain loops over the law itself


def bounded_set(rows: dict[int, np.ndarray], bound: float) -> list[int]:
    """All prefixes by entropy are tried, from the longest."""
    order = sorted(rows, key=lambda place: (entropy(rows[place]), place))
    for size in range(len(order), 1, -1):
        heights = [entropy(rows[place]) for place in order[:size]]
        if sum(heights) - max(heights) <= bound:
            return order[:size]
    return order[:1]


def bounded_law(law, start, bound: float) -> tuple[np.ndarray, list[tuple[np.ndarray, list[int], list[int]]]]:
    """(V^n,) the law of the kernel, all ways there followed, and the steps met: (sequence, hidden places, set)."""
    width, start = law.width, np.asarray(start)
    total, met = np.zeros(width ** len(start)), []

    def follow(sequence: np.ndarray, weight: float) -> None:
        hides = [place for place in range(len(start)) if sequence[place] == width]
        if not hides:
            total[number(sequence[None], width)[0]] += weight
            return
        rows = {place: conditional(law, sequence, hides, place) for place in hides}
        together = bounded_set(rows, bound)
        met.append((sequence.copy(), hides, together))
        for tokens in product(range(width), repeat=len(together)):
            moved, share = sequence.copy(), weight
            for place, token in zip(together, tokens, strict=True):
                moved[place] = token
                share *= rows[place][token]
            if share > 0:
                follow(moved, share)

    follow(start, 1.0)
    return total, met


# ---- laws


@pytest.mark.parametrize("family", ["joint", "incompatible"])
def test_bound_zero_takes_one_place_at_a_time_and_has_the_enumerated_law(family):
    law = Table.random(3, 3, seed=1) if family == "joint" else Incompatible(3, 3)
    expected, met = bounded_law(law, [3, 3, 3], 0.0)
    assert all(len(together) == 1 for _, _, together in met)
    counts = empirical(kernel("entropy_bound", bound=0), law, blank(law, 3, CHAINS))
    assert follows(counts, expected)
    if family == "joint":
        assert total_variation(expected, law.log_probs.exp().numpy()) < 1e-12


@pytest.mark.parametrize("family", ["joint", "incompatible"])
@pytest.mark.parametrize("bound", [0.4, 0.8])
def test_above_zero_it_has_the_enumerated_law(family, bound):
    law = Table.random(3, 3, seed=1, concentration=0.2) if family == "joint" else Incompatible(3, 3, seed=1)
    expected, met = bounded_law(law, [3, 3, 3], bound)
    sizes = {len(together) for _, _, together in met}
    assert len(sizes) > 1  # now one, now several
    counts = empirical(kernel("entropy_bound", bound=bound), law, blank(law, 3, CHAINS))
    assert follows(counts, expected)
    one_by_one, _ = bounded_law(law, [3, 3, 3], 0.0)
    assert total_variation(expected, one_by_one) > 0.03
    assert not follows(counts, one_by_one)


@pytest.mark.parametrize("bound", [0.2, 0.6, 1.1])
def test_no_step_loses_more_than_the_bound(bound):
    several = 0
    for seed in range(4):
        law = Table.random(3, 4, seed=seed, concentration=0.05)
        joint = law.log_probs.exp().numpy()
        ends, met = bounded_law(law, [3] * 4, bound)
        for sequence, _, together in met:
            several += len(together) > 1
            assert total_correlation(joint, sequence, together) <= bound + 1e-12
        total = float((joint.ravel() * np.log(joint.ravel() / ends)).sum())
        assert -1e-12 <= total <= bound * 2  # of four places, at most two steps take more than one
    assert several > 5


def test_what_a_step_says_it_may_lose_is_what_was_counted():
    law = Table.random(3, 4, seed=5)
    _, told = run(kernel("entropy_bound", bound=1.1), law, blank(law, 4, 500))
    rows = {place: conditional(law, np.full(4, 3), [0, 1, 2, 3], place) for place in range(4)}
    together = bounded_set(rows, 1.1)
    heights = [entropy(rows[place]) for place in together]
    assert (told[0].more["revealed"] == len(together)).all()
    assert told[0].more["loss_bound"].numpy() == pytest.approx(sum(heights) - max(heights))
    assert all((info.more["loss_bound"] <= 1.1).all() for info in told)


def test_certain_places_come_along_for_nothing():
    """Place 1 copies place 0 and place 2 is always 1: after one draw the rest is certain."""
    joint = np.zeros((2, 2, 2))
    joint[0, 0, 1], joint[1, 1, 1] = 0.3, 0.7
    law = Table(joint)
    counts = empirical(kernel("entropy_bound", bound=0), law, blank(law, 3, CHAINS))
    assert follows(counts, joint)
    _, told = run(kernel("entropy_bound", bound=0), law, blank(law, 3, 50))
    assert len(told) == 2
    assert (told[0].more["revealed"] == 2).all()  # the certain place, and one that is not


def test_a_bound_that_nothing_reaches_is_one_pass_and_a_product():
    law = Table.random(3, 3, seed=6)
    joint = law.log_probs.exp().numpy()
    singles = [joint.sum(tuple(other for other in range(3) if other != axis)) for axis in range(3)]
    _, told = run(kernel("entropy_bound", bound=1e9), law, blank(law, 3, 10))
    assert len(told) == 1
    counts = empirical(kernel("entropy_bound", bound=1e9), law, blank(law, 3, CHAINS))
    assert follows(counts, np.einsum("a,b,c->abc", *singles))
    assert not follows(counts, joint)


# ---- passes, and options


def test_chains_that_are_done_sooner_cost_nothing_more():
    law = Table.random(3, 4, seed=3)
    _, told = run(kernel("entropy_bound", bound=0.8), law, blank(law, 4, 60))
    passes = sum(info.passes for info in told)
    assert passes.min() < passes.max()
    assert int(sum(info.more["revealed"].sum() for info in told)) == 60 * 4


def test_forbidden_tokens_are_never_drawn_and_entropies_know_it():
    law = Table.random(4, 2, seed=5)
    by_place = torch.tensor([[True, False, False, False], [False, True, True, False]])
    state, told = run(kernel("entropy_bound", bound=0), law, blank(law, 2, 2000, allowed=by_place))
    assert set(state.ids[:, 0].tolist()) == {0}
    assert set(state.ids[:, 1].tolist()) == {1, 2}
    assert len(told) == 1  # the first place is certain once only one token may stand there


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"bound": -0.1}, "bound=-0.1: give nats, at least 0"),
        ({"bound": float("nan")}, "bound=nan"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told):
        kernel("entropy_bound", **options)


@pytest.mark.parametrize(("bound", "nats", "apart"), [(0.5, 0.149, 0.160), (0.7, 0.476, 0.415), (2.1, 0.983, 0.558)])
def test_four_spins_lose_what_the_documentation_says(bound, nats, apart):
    law, start = Ising.chain(4, 1.0), [2] * 4
    (exact, _), (found, _) = bounded_law(law, start, 0.0), bounded_law(law, start, bound)
    assert (exact * np.log(exact / found)).sum() == pytest.approx(nats, abs=5e-4)
    assert total_variation(exact, found) == pytest.approx(apart, abs=5e-4)
