"""How fast chains forget: seen in many of them, and exact for matrices that are known."""

import math
import re
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.diagnostics import mixing
from besag.diagnostics.mixing import approach, exact_hitting, exact_mixing, hitting
from besag.errors import BesagError


def stochastic(size, seed, zeros=0.0):
    rng = np.random.default_rng(seed)
    matrix = rng.gamma(0.5, size=(size, size)) * (rng.random((size, size)) >= zeros) + 1e-3 * np.eye(size)
    return matrix / matrix.sum(1, keepdims=True)


def walk(matrix, start, chains, steps, seed=0):
    """(chains, steps + 1) states of a chain, from its matrix alone."""
    rng, cumulative = np.random.default_rng(seed), matrix.cumsum(1)
    states = np.full((chains, steps + 1), start)
    for t in range(steps):
        heights = rng.random(chains)[:, None] * cumulative[states[:, t], -1:]
        states[:, t + 1] = (heights >= cumulative[states[:, t]]).sum(1)
    return states


# ---- seen


def test_the_distance_is_the_one_of_the_laws_themselves():
    matrix = stochastic(4, 3)
    law = exact_mixing(matrix).law
    states = walk(matrix, 0, 5000, 40)
    found = approach(states)
    power = np.eye(4)
    for step in range(6):
        known = 0.5 * np.abs(power[0] - law).sum()
        assert found.distance[step] == pytest.approx(known, abs=0.03)  # 5000 chains: within 4 of its own errors
        power = power @ matrix
    np.testing.assert_allclose(found.late, law, atol=0.01)


@pytest.mark.parametrize("chains", [3, 10, 200])
def test_the_floor_is_what_arrived_chains_show(chains):
    law = np.array([0.6, 0.3, 0.1])
    rng = np.random.default_rng(0)
    seen = [0.5 * np.abs(rng.multinomial(chains, law) / chains - law).sum() for _ in range(4000)]
    floor = 0.5 * sum(mixing._mean_deviation(chains, p) for p in law)
    assert floor == pytest.approx(np.mean(seen), rel=0.03)


@given(st.integers(1, 30), st.floats(0, 1))
def test_the_mean_deviation_of_a_binomial_is_its_sum(n, p):
    by_sum = sum(comb(n, b) * p**b * (1 - p) ** (n - b) * abs(b / n - p) for b in range(n + 1))
    assert mixing._mean_deviation(n, p) == pytest.approx(by_sum, abs=1e-12)


def test_the_step_is_the_first_after_which_nothing_is_far():
    found = mixing.Approach(np.array([0.9, 0.3, 0.6, 0.2, 0.1]), 0.1, np.ones(1), 9)
    assert found.step(0.3) == 3  # not 1: it is far again at 2
    assert found.step(0.8) == 0
    assert replace(found, distance=np.array([0.1, 0.9])).step(0.3) is None


# ---- hitting


def test_hitting_times_are_counted_from_the_start_and_censored_chains_are_told():
    states = np.array([[2, 0, 1], [1, 1, 1], [0, 0, 0]])
    found = hitting(states, 1)
    assert found.times.tolist() == [2, 0, 3]
    assert found.hit.tolist() == [True, True, False]
    assert found.median == 2
    assert found.restricted_mean == pytest.approx(5 / 3)
    assert "1 chain did not come there" in repr(found)
    rare = hitting(states, 2)
    assert rare.median == math.inf
    assert "median more than 2 steps" in repr(rare)
    assert hitting(states, [1, 2]).times.tolist() == [0, 0, 3]


def test_states_of_tokens_and_predicates():
    ids = np.array([[[0, 1], [1, 1], [1, 2]], [[1, 2], [0, 0], [0, 1]]])  # (2, 3, 2)
    assert hitting(ids, [1, 2]).times.tolist() == [2, 0]
    assert hitting(ids, [[1, 1], [0, 0]]).times.tolist() == [1, 1]
    assert hitting(ids, lambda states: states[:, :, 1] == 1).times.tolist() == [0, 2]


def test_expected_hitting_times_are_those_of_walks():
    matrix = stochastic(5, 1)
    known = exact_hitting(matrix, [3])
    assert known[3] == 0
    for start in (0, 4):
        found = hitting(walk(matrix, start, 4000, 400), 3)
        assert found.share == 1
        error = found.times.std() / math.sqrt(4000)
        assert found.restricted_mean == pytest.approx(known[start], abs=4 * error)


def test_a_state_that_may_never_be_reached_takes_for_ever():
    matrix = np.array([[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]])  # 1 and 2 are traps
    assert exact_hitting(matrix, [2]).tolist() == [math.inf, math.inf, 0]
    assert exact_hitting(matrix, [1, 2]).tolist() == [2, 0, 0]


# ---- exact


@given(st.integers(2, 6), st.integers(0, 30), st.floats(0.01, 0.6))
def test_the_mixing_time_is_the_first_step_within_epsilon(size, seed, epsilon):
    matrix = stochastic(size, seed, zeros=0.3)
    found = exact_mixing(matrix, epsilon)
    np.testing.assert_allclose(found.law @ matrix, found.law, atol=1e-9)
    if found.time == math.inf or found.time > 300:
        return
    power, step = np.eye(size), 0
    while 0.5 * np.abs(power - found.law).sum(1).max() > epsilon:
        power, step = power @ matrix, step + 1
    assert found.time == step


def test_two_states_by_hand():
    found = exact_mixing([[0.9, 0.1], [0.3, 0.7]], epsilon=0.1)
    np.testing.assert_allclose(found.law, [0.75, 0.25])
    assert found.second == pytest.approx(0.6)
    assert found.relaxation == pytest.approx(2.5)
    assert found.reversible
    assert found.time == math.ceil(math.log(0.1 / 0.75) / math.log(0.6))  # the distance from state 1 is 0.75 · 0.6^t


def test_a_turning_wheel_is_not_reversible():
    wheel = 0.5 * np.eye(3) + 0.5 * np.roll(np.eye(3), 1, axis=1)
    found = exact_mixing(wheel)
    assert not found.reversible
    assert found.second == pytest.approx(0.5)  # |½ + ½ e^(2πi/3)|
    assert "not reversible" in repr(found)


def test_chains_that_never_mix_say_why():
    periodic = exact_mixing([[0, 1], [1, 0]])
    assert (periodic.time, periodic.reason) == (math.inf, "it is periodic")
    apart = exact_mixing(np.eye(2))
    assert apart.reason == "several laws stay"
    assert np.isnan(apart.law).all()
    assert "never mixes" in repr(apart)
    assert exact_mixing([[1.0]]).time == 0


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: approach(np.zeros(3)), "a law is seen in many chains at a time"),
        (lambda: hitting(np.zeros(3), 1), "states have the shape (chains, steps)"),
        (lambda: hitting(np.zeros((2, 3, 4)), [1, 2]), "a state has the shape (4,); got (2,)"),
        (lambda: hitting(np.zeros((2, 3)), lambda x: x.any(1)), "a predicate answers True or False for each of (2, 3)"),
        (lambda: exact_mixing(np.zeros((2, 3))), "a transition matrix is square"),
        (lambda: exact_mixing([[0.5, 0.6], [0, 1]]), "the rows of a transition matrix are laws"),
        (lambda: exact_mixing(np.eye(2), 0), "epsilon=0: a total variation to reach lies between 0 and 1"),
    ],
)
def test_input_that_makes_no_sense(call, told):
    with pytest.raises(BesagError, match=re.escape(told)):
        call()
