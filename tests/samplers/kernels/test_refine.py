"""RefineState against its definition: a product of conditionals each step, exactly, and a function with argmax."""

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
from besag.engine import Engine
from besag.errors import BesagError
from besag.lab.oracles import (
    Incompatible,
    blank,
    conditional,
    empirical,
    follows,
    number,
    run,
    sequences,
    total_variation,
)
from besag.samplers import (
    kernel,
    refine,  # noqa: F401 (registers itself)
)
from besag.samplers.kernel import Noise

CHAINS = 10_000


# ---- the definition


def stutters(sequence: np.ndarray, free: list[int]) -> list[int]:
    return [place for place in free if place > 0 and sequence[place] == sequence[place - 1]]


def updates(
    law, sequence: np.ndarray, free: list[int], *, share: float = 1.0, hide: bool = False, stutter: bool = False
) -> dict[int, np.ndarray]:
    """The places that one step updates, and the law of the new token at each."""
    hides = stutters(sequence, free) if stutter else []
    rows = {place: conditional(law, sequence, [*hides, place] if hide else hides, place) for place in free}
    count = math.ceil(share * len(free) - 1e-12)
    unsure = sorted(free, key=lambda place: (rows[place].max(), place))[:count]
    return {place: rows[place] for place in free if place in unsure or place in hides}


def moved(sequence: np.ndarray, rows: dict[int, np.ndarray]) -> list[tuple[np.ndarray, float]]:
    """Everywhere that independent draws from the rows can lead, each with its probability."""
    ways = []
    for tokens in product(range(len(next(iter(rows.values())))), repeat=len(rows)) if rows else [()]:
        after = sequence.copy()
        after[list(rows)] = tokens
        ways.append((after, math.prod(row[token] for row, token in zip(rows.values(), tokens, strict=True))))
    return ways


def one_step(law, before: dict[tuple[int, ...], float], places: int, **options) -> dict[tuple[int, ...], float]:
    after: dict[tuple[int, ...], float] = {}
    for sequence, weight in before.items():
        rows = updates(law, np.array(sequence), list(range(places)), **options)
        for ends, probability in moved(np.array(sequence), rows):
            after[tuple(ends)] = after.get(tuple(ends), 0.0) + weight * probability
    return after


def stutters_once_more(law, before: dict[tuple[int, ...], float], places: int) -> dict[tuple[int, ...], float]:
    after: dict[tuple[int, ...], float] = {}
    for sequence, weight in before.items():
        hides = stutters(np.array(sequence), list(range(places)))
        rows = {place: conditional(law, np.array(sequence), hides, place) for place in hides}
        for ends, probability in moved(np.array(sequence), rows):
            after[tuple(ends)] = after.get(tuple(ends), 0.0) + weight * probability
    return after


def table_of(law: dict[tuple[int, ...], float], width: int, places: int) -> np.ndarray:
    return np.array([law.get(tuple(sequence), 0.0) for sequence in sequences(width, places)])


def start_law(start: str, width: int, places: int) -> dict[tuple[int, ...], float]:
    if start == "noise":
        return {tuple(sequence): width**-places for sequence in sequences(width, places).tolist()}
    return {(width,) * places: 1.0}


# ---- the law of draws


@pytest.mark.parametrize("start", ["noise", "mask"])
@pytest.mark.parametrize("hide", [False, True])
def test_each_step_is_a_product_of_conditionals(start, hide):
    law = Incompatible(3, 3, seed=1)
    laws = [start_law(start, 3, 3)]
    for _ in range(3):
        laws.append(one_step(law, laws[-1], 3, hide=hide))
    for steps in (1, 2, 3):
        expected = table_of(laws[steps], 3, 3)
        assert expected.sum() == pytest.approx(1)
        refines = kernel("refine", start=start, hide=hide, pick="sample", iterations=steps)
        counts = empirical(refines, law, blank(law, 3, CHAINS), seed=steps)
        assert follows(counts, expected)
    wrong = one_step(law, laws[1], 3, hide=not hide)
    assert total_variation(table_of(laws[2], 3, 3), table_of(wrong, 3, 3)) > 0.05  # to hide or not is not the same


def test_a_given_start_with_a_mask_in_it():
    law, start = Incompatible(3, 3, seed=2), np.array([1, 3, 0])
    expected = table_of(one_step(law, {(1, 3, 0): 1.0}, 3), 3, 3)
    counts = empirical(kernel("refine", start="given", pick="sample", iterations=1), law, blank(law, 3, CHAINS, start))
    assert follows(counts, expected)


def test_not_even_a_true_joint_is_invariant():
    law = Table.random(2, 3, seed=3)
    joint = law.log_probs.exp().numpy()
    start = dict(zip(map(tuple, sequences(2, 3).tolist()), joint.ravel().tolist(), strict=True))
    after = table_of(one_step(law, start, 3, hide=True), 2, 3)
    assert total_variation(after, joint) > 0.05
    drawn = np.random.default_rng(0).choice(8, size=CHAINS, p=joint.ravel())
    refines = kernel("refine", start="given", hide=True, pick="sample", iterations=1)
    counts = empirical(refines, law, blank(law, 3, CHAINS, sequences(2, 3)[drawn]))
    assert follows(counts, after)
    assert not follows(counts, joint)


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_after_the_first_step_only_the_unsure_places_are_updated(share):
    law = Incompatible(2, 4, seed=4)
    first = one_step(law, start_law("noise", 2, 4), 4)
    expected = one_step(law, one_step(law, first, 4, share=share), 4, share=share)
    refines = kernel("refine", share=share, pick="sample", iterations=3)
    counts = empirical(refines, law, blank(law, 4, CHAINS))
    assert follows(counts, table_of(expected, 2, 4))
    everything = one_step(law, one_step(law, first, 4), 4)
    assert not follows(counts, table_of(everything, 2, 4))
    from_the_first_on = one_step(law, one_step(law, start_law("noise", 2, 4), 4, share=share), 4, share=share)
    assert not follows(counts, table_of(one_step(law, from_the_first_on, 4, share=share), 2, 4))


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("hide", [False, True])
def test_stutters_are_hidden_and_after_the_last_step_predicted_once_more(share, hide):
    law = Incompatible(2, 3, seed=5)
    laws = [start_law("noise", 2, 3)]
    laws.append(one_step(law, laws[-1], 3, hide=hide, stutter=True))
    laws.append(one_step(law, laws[-1], 3, hide=hide, stutter=True, share=share))
    expected = stutters_once_more(law, laws[-1], 3)
    refines = kernel("refine", remask_stutter=True, share=share, hide=hide, pick="sample", iterations=2)
    counts = empirical(refines, law, blank(law, 3, CHAINS))
    assert follows(counts, table_of(expected, 2, 3))
    assert not follows(counts, table_of(laws[-1], 2, 3))  # without the one more
    plain = one_step(law, one_step(law, laws[0], 3, hide=hide), 3, hide=hide, share=share)
    assert not follows(counts, table_of(plain, 2, 3))


def test_noise_is_uniform_over_what_is_allowed():
    law = Incompatible(4, 3)
    by_place = torch.tensor([[1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]]).bool()
    for allowed in (None, torch.tensor([1, 0, 1, 1]).bool(), by_place):
        canvas = blank(law, 3, CHAINS, allowed=allowed)
        canvas = canvas._replace(ids=canvas.ids.clone(), free=canvas.free & torch.tensor([True, True, False]))
        canvas.ids[:, 2] = 1
        state = kernel("refine").init(Engine(law, progress=False), Noise(5, torch.arange(CHAINS)), canvas)
        weights = np.ones((3, 4)) if allowed is None else np.broadcast_to(allowed.numpy().astype(float), (3, 4))
        joint = np.einsum("a,b,c->abc", weights[0], weights[1], np.eye(4)[1])
        assert follows(np.bincount(number(state.ids, 4), minlength=64), joint)


# ---- a function of the sequence


def unroll(
    law,
    sequence: np.ndarray,
    free: list[int],
    iterations: int,
    share: float = 1.0,
    hide: bool = False,
    stutter: bool = False,
) -> tuple[np.ndarray, int]:
    """The sequence that argmax leads to, and the passes that this takes."""
    sequence, passes = sequence.copy(), 0
    for step in range(iterations):
        passes += len(free) if hide else 1
        after = sequence.copy()
        for place, row in updates(
            law, sequence, free, share=share if step else 1.0, hide=hide, stutter=stutter
        ).items():
            after[place] = row.argmax()
        if (after == sequence).all():
            return sequence, passes
        sequence = after
    if stutter and (hides := stutters(sequence, free)):
        passes += len(hides) if hide else 1
        rows = {place: conditional(law, sequence, hides, place) for place in hides}
        for place, row in rows.items():
            sequence[place] = row.argmax()
    return sequence, passes


@given(
    st.integers(0, 1000),
    st.sampled_from([1.0, 0.6, 0.3]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2, 3, 8]),
    st.sampled_from(["table", "arbitrary"]),
)
@settings(max_examples=60, deadline=None)
def test_argmax_is_the_plain_loop_and_rest_costs_nothing(seed, share, hide, stutter, iterations, family):
    law = Counting(Incompatible(3, 4, seed) if family == "table" else Arbitrary(3))
    start = np.random.default_rng(seed).integers(0, 3, size=(5, 4))
    canvas = blank(law, 4, 5, start)
    canvas = canvas._replace(free=canvas.free & torch.tensor([True, True, False, True]))
    options = {"share": share, "hide": hide, "remask_stutter": stutter, "iterations": iterations}
    refines = kernel("refine", start="given", **options)
    state, told = run(refines, law, canvas)
    passes = sum(info.passes for info in told)
    for chain in range(5):
        ends, spent = unroll(law.inner, start[chain], [0, 1, 3], iterations, share, hide, stutter)
        assert state.ids[chain].tolist() == ends.tolist()
        assert passes[chain] == spent
    assert len(law.sequences) == int(passes.sum())
    assert len(told) <= refines.steps(canvas)
    assert refines.done(state)


def test_a_chain_that_rests_is_left_alone_while_others_go_on():
    law = Incompatible(3, 3, seed=1)
    every = sequences(3, 3)
    rests = [sequence for sequence in every if (unroll(law, sequence, [0, 1, 2], 1)[0] == sequence).all()]
    moves = [sequence for sequence in every if (unroll(law, sequence, [0, 1, 2], 1)[0] != sequence).any()]
    start = np.array([rests[0], moves[0]])
    _, told = run(kernel("refine", start="given", iterations=2), law, blank(law, 3, 2, start))
    assert told[0].changed.tolist()[0] == 0
    assert [info.passes.tolist() for info in told] == [[1, 1], [0, 1]]
    _, told = run(kernel("refine", start="given", iterations=50), law, blank(law, 3, 1, rests[0]))
    assert len(told) == 1
    # A draw that changes nothing says nothing about the next.
    _, told = run(kernel("refine", start="given", iterations=5, pick="sample"), law, blank(law, 3, 9, rests[0]))
    assert sum(info.passes for info in told).tolist() == [5] * 9


def test_the_score_is_that_of_the_last_iteration():
    law, start = Incompatible(3, 3, seed=6), np.array([0, 1, 2])
    _, told = run(kernel("refine", start="given", iterations=2), law, blank(law, 3, 1, start))
    before, _ = unroll(law, start, [0, 1, 2], 1)
    rows = updates(law, before, [0, 1, 2])
    assert told[-1].more["score"].dtype == torch.float64
    assert float(told[-1].more["score"][0]) == pytest.approx(sum(np.log(row.max()) for row in rows.values()))


def test_share_rounds_as_it_says():
    """0.07 of 100 places are 7, though 0.07 · 100 is above 7 in floating point."""
    law = Counting(Arbitrary(2))
    canvas = blank(law, 100, 1, np.zeros(100, int))
    state, told = run(kernel("refine", start="given", share=0.07, iterations=2, pick="sample"), law, canvas)
    first, _ = run(kernel("refine", start="given", share=0.07, iterations=1, pick="sample"), law, canvas)
    assert int((state.log_prob != first.log_prob).sum()) == 7
    assert len(told) == 2


# ---- what is refused


def test_an_exact_law_says_what_it_cannot_answer():
    law = Table.random(2, 3)
    with pytest.raises(BesagError, match="answers hidden places only"):
        run(kernel("refine"), law, blank(law, 3, 2))
    run(kernel("refine", hide=True), law, blank(law, 3, 2))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"iterations": 0}, "iterations=0: make at least 1"),
        ({"share": 0}, "share=0: the share of places to update is above 0 and at most 1"),
        ({"share": 1.5}, "share=1.5"),
        ({"start": "nois"}, "start='nois': give one of noise, mask, given. Did you mean 'noise'?"),
        ({"top_p": 0.9}, "pick='argmax' takes the likeliest token, so .*top_p=0.9.*or give pick='sample'"),
    ],
)
def test_options_that_make_no_sense(options, told):
    with pytest.raises(BesagError, match=told.replace("?", r"\?")):
        kernel("refine", **options)
