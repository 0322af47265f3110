"""Least squares from sums against the plain fit, Spearman against scipy, and what is learned on a tiny network."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import tiny, vocabulary

import besag
from besag.errors import BesagError
from besag.scores import distilling
from besag.scores.distilling import Moments


def data(seed: int, places: int = 40, width: int = 5):
    noise = np.random.default_rng(seed)
    z = noise.normal(size=(places, width)) * [1, 3, 0.1, 10, 1]
    return z, z @ noise.normal(size=width) + noise.normal(size=places)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 1.0, 100.0]))
def test_sums_are_enough_for_ridge_and_its_error(seed, penalty):
    z, y = data(seed)
    moments = Moments(5)
    for part in np.array_split(np.arange(40), 3):
        moments.add(z[part], y[part])
    size = np.sqrt((z**2).mean(0))
    stacked = np.concatenate([z, np.diag(np.sqrt(penalty) * size)])
    weight = np.linalg.lstsq(stacked, np.append(y, np.zeros(5)), rcond=None)[0]
    np.testing.assert_allclose(moments.ridge(penalty), weight, rtol=1e-6, atol=1e-9)
    assert moments.error(weight) == pytest.approx(np.mean((y - z @ weight) ** 2))


def test_two_sums_are_those_of_both():
    (z, y), whole, one, other = data(1), Moments(5), Moments(5), Moments(5)
    whole.add(z, y)
    one.add(z[:10], y[:10])
    other.add(z[10:], y[10:])
    np.testing.assert_allclose((one + other).ridge(1.0), whole.ridge(1.0))


def test_a_penalty_without_end_leaves_what_the_network_says():
    moments = Moments(5)
    moments.add(*data(2))
    assert np.abs(moments.ridge(1e15)).max() < 1e-9


WORDS = ["the", "cat", "man", "on", "mat", "sleeps", "a"]


@pytest.fixture(scope="module")
def taught():
    """A tiny network of two layers, and the terms of all texts of three of these words in another order each."""
    lm = besag.load((tiny("bert", seed=3), vocabulary("bert").tokenizer))
    texts = [" ".join(words) for words in itertools.permutations(WORDS, 3)][::2]
    terms = {score.text: score.log_probs for score in lm.score(texts) if score.status == "ok"}
    learn, judge = distilling.held_out(terms, 25)
    found, penalty = distilling.teach(lm.engine, learn)
    distilling.use(lm.engine, found)
    return lm, found, penalty, judge


def test_it_comes_nearer_to_pll_than_unmasked(taught):
    lm, found, penalty, judge = taught
    figures = distilling.judge(lm.engine, judge)
    assert found.view == "twins"
    assert penalty in distilling.LAMBDAS
    assert figures["maskless"].error < 0.8 * figures["unmasked"].error
    assert figures["maskless"].tokens > figures["unmasked"].tokens
    assert set(figures) == {"maskless", "unmasked", "length"}


def test_its_tokens_sum_to_its_total_and_stay_with_other_texts(taught):
    lm, _, _, judge = taught
    texts = list(judge)[:6]
    together = lm.score(texts, "maskless")
    for text, score in zip(texts, together, strict=True):
        assert score.total == pytest.approx(score.log_probs.sum())
        assert lm.score(text, "maskless").total == pytest.approx(score.total, abs=1e-4)
        assert score.normalised == ""
        assert score.method == "maskless"


def test_it_runs_one_pass_where_pll_runs_many(taught):
    lm, _, _, judge = taught
    ran = {}
    for method in ("pll", "maskless"):
        before = lm.engine.tokens_run
        text, terms = next(iter(judge.items()))
        lm.score(text, method)
        ran[method] = lm.engine.tokens_run - before
    assert ran["pll"] == len(terms) * ran["maskless"]
    speed = distilling.race(lm.engine, judge)
    assert 3 <= speed.tokens < 6
    assert speed.gain == pytest.approx(speed.maskless / speed.pll)


def test_ranks_are_refused(taught):
    with pytest.raises(BesagError, match="no one rank"):
        taught[0].score("the cat", "maskless", rank=True)


def test_a_network_without_twins_learns_from_what_is_shown():
    lm = besag.load((tiny("modernbert"), vocabulary("modernbert").tokenizer))
    texts = [" ".join(words) for words in itertools.permutations(["a", "b", "c", "d", "e"], 3)]
    terms = {score.text: score.log_probs for score in lm.score(texts)}
    found, _ = distilling.teach(lm.engine, terms)
    distilling.use(lm.engine, found)
    figures = distilling.judge(lm.engine, terms)
    assert found.view == "plain"
    assert figures["maskless"].error < figures["unmasked"].error


def test_too_few_texts_are_refused(taught):
    lm, _, _, judge = taught
    few = dict(itertools.islice(judge.items(), 5))
    for verb in (distilling.teach, distilling.judge):
        with pytest.raises(BesagError, match="5 "):
            verb(lm.engine, few)
