"""Mask-predict against its definition as plain loops: which places are hidden, what is predicted, what the score is."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting

from besag.conditionals.table import Table
from besag.errors import BesagError
from besag.lab.oracles import Incompatible, blank, conditional, empirical, follows, number, run, total_variation
from besag.samplers import (
    kernel,
    mask_predict,  # noqa: F401 (registers itself)
)

CHAINS = 10_000
SCHEDULES = ("linear", "cosine")


# ---- the definition


def size(places: int, step: int, iterations: int, schedule: str) -> int:
    if schedule == "linear":
        return max(1, places * (iterations - step) // iterations)
    return max(1, math.floor(places * math.cos(math.pi * step / (2 * iterations)) + 1e-12))


def least_probable(probs: dict[int, float], count: int) -> list[int]:
    return sorted(probs, key=lambda place: (probs[place], place))[:count]


def search(law, start: np.ndarray, free: list[int], iterations: int, schedule: str) -> tuple[np.ndarray, float]:
    """The filling that taking the likeliest tokens leads to, and its score."""
    sequence, probs = start.copy(), dict.fromkeys(free, 0.0)
    for step in range(iterations):
        hide = least_probable(probs, size(len(free), step, iterations, schedule))
        rows = {place: conditional(law, sequence, hide, place) for place in hide}
        for place in hide:
            sequence[place], probs[place] = rows[place].argmax(), rows[place].max()
    return sequence, float(np.log(list(probs.values())).sum())


def drawn_law(law, places: int, iterations: int, schedule: str) -> np.ndarray:
    """(V^n,) where the chains end if tokens are drawn, all ways there followed."""
    total = np.zeros(law.width**places)

    def follow(sequence: np.ndarray, probs: dict[int, float], step: int, weight: float) -> None:
        if step == iterations:
            total[number(sequence[None], law.width)[0]] += weight
            return
        hide = least_probable(probs, size(places, step, iterations, schedule))
        rows = {place: conditional(law, sequence, hide, place) for place in hide}
        for tokens in product(range(law.width), repeat=len(hide)):
            moved, now, share = sequence.copy(), dict(probs), weight
            for place, token in zip(hide, tokens, strict=True):
                moved[place], now[place] = token, rows[place][token]
                share *= rows[place][token]
            follow(moved, now, step + 1, share)

    follow(np.full(places, law.width), dict.fromkeys(range(places), 0.0), 0, 1.0)
    return total


@pytest.mark.parametrize(
    ("places", "iterations", "schedule", "expected"),
    [
        (10, 10, "linear", [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (5, 4, "linear", [5, 3, 2, 1]),
        (7, 1, "linear", [7]),
        (10, 5, "linear", [10, 8, 6, 4, 2]),  # 10 · (1 − 4/5) is 1.999… in floating point
        (6, 3, "cosine", [6, 5, 3]),
        (5, 5, "cosine", [5, 4, 4, 2, 1]),
    ],
)
def test_so_many_places_are_hidden(places, iterations, schedule, expected):
    law = Counting(Arbitrary(1))
    canvas = blank(law, places, 2)
    predicts = kernel("mask_predict", iterations=iterations, schedule=schedule)
    _, told = run(predicts, law, canvas)
    hides = [[sequence.count(law.width) for sequence in batch] for batch in law.batches]
    assert hides == [[count, count] for count in expected]
    assert law.head_rows == 2 * sum(expected)  # what stays is not asked about
    assert len(told) == iterations == predicts.steps(canvas)
    assert all(info.passes.tolist() == [1, 1] for info in told)


# ---- what comes out


@given(st.integers(0, 200), st.sampled_from(SCHEDULES), st.integers(1, 3), st.sampled_from(["joint", "incompatible"]))
@settings(max_examples=40, deadline=None)
def test_the_likeliest_tokens_are_those_of_the_plain_loop(seed, schedule, iterations, family):
    law = Table.random(3, 4, seed) if family == "joint" else Incompatible(3, 4, seed)
    start = np.array([3, 1, 3, 0])  # a free place where a token stands is predicted, too
    canvas = blank(law, 4, 3, start)
    canvas = canvas._replace(free=canvas.free & torch.tensor([True, False, True, True]))
    state, told = run(kernel("mask_predict", iterations=iterations, schedule=schedule), law, canvas)
    sequence, score = search(law, start, [0, 2, 3], iterations, schedule)
    assert (state.ids.numpy() == sequence).all()
    assert np.allclose(told[-1].more["score"].numpy(), score, atol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("family", ["joint", "incompatible"])
def test_drawn_tokens_have_the_enumerated_law_which_is_not_the_joint(schedule, family):
    law = Table.random(2, 4, seed=1) if family == "joint" else Incompatible(2, 4, seed=1)
    options = {"iterations": 3, "schedule": schedule, "pick": "sample"}
    counts = empirical(kernel("mask_predict", **options), law, blank(law, 4, CHAINS))
    expected = drawn_law(law, 4, 3, schedule)
    assert expected.sum() == pytest.approx(1)
    assert follows(counts, expected)
    assert total_variation(expected, drawn_law(law, 4, 2, schedule)) > 0.02  # this test can tell the steps apart
    if family == "joint":
        assert total_variation(expected, law.log_probs.exp().numpy()) > 0.05
        assert not follows(counts, law.log_probs.exp().numpy())


def test_the_two_schedules_differ():
    law = Incompatible(2, 4, seed=1)
    assert total_variation(drawn_law(law, 4, 3, "linear"), drawn_law(law, 4, 3, "cosine")) > 0.02


def test_of_equally_probable_tokens_the_leftmost_is_hidden_first():
    law = Counting(Table(np.ones((2, 2, 2))))
    run(kernel("mask_predict", iterations=3, pick="sample"), law, blank(law, 3, 5))
    hides = [
        {tuple(place for place in range(3) if sequence[place] == 2) for sequence in batch} for batch in law.batches
    ]
    assert hides == [{(0, 1, 2)}, {(0, 1)}, {(0,)}]


def test_it_ends_after_its_steps_although_nothing_is_hidden_before():
    law = Incompatible(3, 4)
    predicts, canvas = kernel("mask_predict", iterations=4), blank(law, 4, 3)
    assert predicts.ends
    for steps in (1, 2, 3):
        state, _ = run(predicts, law, canvas, steps)
        assert (state.ids < 3).all()
        assert not predicts.done(state)
    state, told = run(predicts, law, canvas)
    assert len(told) == 4
    assert predicts.done(state)


def test_left_to_itself_it_makes_ten_steps_or_one_a_place_each_chain_for_itself():
    law = Incompatible(1, 11)
    canvas = blank(law, 11, 3)
    canvas.free[1, 4:] = False
    canvas.free[2, 1:] = False
    canvas.ids[~canvas.free] = 0
    predicts = kernel("mask_predict")
    predicts.check(canvas)
    _, told = run(predicts, law, canvas)
    assert sum(info.passes for info in told).tolist() == [10, 4, 1]
    assert len(told) == predicts.steps(canvas) == 10


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"iterations": 0}, "iterations=0: make at least 1"),
        ({"schedule": "cosin"}, "schedule='cosin': give one of linear, cosine. Did you mean 'cosine'?"),
        ({"temperature": 2.0}, "pick='argmax' takes the likeliest token, so .*temperature=2.0.*or give pick='sample'"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told.replace("?", r"\?")):
        kernel("mask_predict", **options)


def test_more_iterations_than_places_are_refused():
    law = Incompatible(2, 4)
    canvas = blank(law, 4, 2)
    kernel("mask_predict", iterations=4).check(canvas)
    with pytest.raises(BesagError, match=r"mask_predict with iterations=5 and 4 free places: .* iterations=4 or less"):
        kernel("mask_predict", iterations=5).check(canvas)
    canvas.free[1, 1:] = False
    with pytest.raises(BesagError, match="iterations=4 and 1 free place: "):
        kernel("mask_predict", iterations=4).check(canvas)
