"""Gumbel noise in hindsight: it gives the token again, and over tokens that were drawn it is plain noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from besag.lab.oracles import FALSE_ALARM, follows
from besag.samplers.editing.gumbel import _from_normal, _to_normal, gumbel, hindsight, mixed

LAW = np.array([0.6, 0.25, 0.1, 0.05])
DRAWS = 20_000


def noises(tokens, law=LAW, seed=0):
    rng = np.random.default_rng(seed)
    log_probs = np.log(np.tile(law, (len(tokens), 1)))
    return hindsight(log_probs, tokens, rng.random(len(tokens)), rng.random((len(tokens), len(law))))


def is_gumbel(values):
    return kstest(np.exp(-np.exp(-values)), "uniform").pvalue > FALSE_ALARM


@pytest.fixture(scope="module")
def drawn():
    tokens = np.random.default_rng(1).choice(4, size=DRAWS, p=LAW)
    return tokens, noises(tokens)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.integers(0, 10**6))
def test_the_noise_gives_the_token_again(weights, seed):
    law = np.array(weights) + [1e-12, *[0] * (len(weights) - 1)]
    law /= law.sum()
    tokens = np.flatnonzero(law > 0)
    with np.errstate(divide="ignore"):
        log_probs = np.tile(np.log(law), (len(tokens), 1))
    rng = np.random.default_rng(seed)
    found = hindsight(log_probs, tokens, rng.random(len(tokens)), rng.random(log_probs.shape))
    assert np.isfinite(found).all()
    assert (log_probs + found).argmax(1).tolist() == tokens.tolist()


def test_over_tokens_that_were_drawn_it_is_plain_noise(drawn):
    _, found = drawn
    assert all(is_gumbel(column) for column in found.T)
    assert is_gumbel((np.log(LAW) + found).max(1))  # the largest value is one, too
    scores = _to_normal(found)
    assert np.abs(np.corrcoef(scores.T) - np.eye(4)).max() < 4 / np.sqrt(DRAWS)
    cell = (scores > 0) @ [8, 4, 2, 1]  # which of 16 quadrants: independent beyond correlation
    assert follows(np.bincount(cell, minlength=16), np.ones(16))


def test_of_one_token_alone_it_is_not():
    found = noises(np.full(DRAWS, 3))
    assert not is_gumbel(found[:, 3])  # high: it had to win with a probability of 0.05
    assert found[:, 3].mean() == pytest.approx(np.euler_gamma - np.log(0.05), abs=0.05)
    assert not is_gumbel(found[:, 0])


def test_with_another_law_it_draws_from_that(drawn):
    tokens, found = drawn
    other = np.array([0.3, 0.3, 0.2, 0.2])
    again = (np.log(other) + found).argmax(1)
    assert follows(np.bincount(again, minlength=4), other)
    assert (again == tokens).mean() > (LAW @ other) + 0.2  # far more often the same than independent draws are
    ratio = other / LAW
    for old, new in zip(tokens, again, strict=True):
        assert new == old or ratio[new] > ratio[old]  # only a token that gained can take over


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.9, 1.0])
def test_mixed_noise_is_noise_and_as_near_as_it_says(drawn, strength):
    _, found = drawn
    fresh = gumbel(np.random.default_rng(7).random(found.shape))
    mix = mixed(found, fresh, strength)
    assert all(is_gumbel(column) for column in mix.T)
    correlation = np.corrcoef(_to_normal(mix).ravel(), _to_normal(found).ravel())[0, 1]
    assert correlation == pytest.approx(np.cos(strength * np.pi / 2), abs=0.02)
    if strength == 0.3:
        assert not is_gumbel((0.7 * found + 0.3 * fresh)[:, 0])  # an average is no Gumbel variable


@given(st.floats(-4, 600))
def test_the_normal_scale_and_back(value):
    there = _to_normal(np.array([value]))
    assert _from_normal(there)[0] == pytest.approx(value, rel=1e-6, abs=1e-9)


def test_the_normal_scale_is_that_of_scipy():
    values = np.linspace(-3, 30, 50)
    np.testing.assert_allclose(_to_normal(values), -norm.ppf(-np.expm1(-np.exp(-values))), rtol=1e-9, atol=1e-12)
    assert np.isfinite(_from_normal(_to_normal(np.array([-30.0, 1e6])))).all()
