"""The curve of faithfulness: by hand on a prediction that rests on one token, and by plain loops on a law."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import besag
from besag.engine import Engine
from besag.explanation.explaining import explain
from besag.explanation.faithfulness import Curve, follow
from besag.explanation.prediction import Said

MASK = 9


class OneToken:
    """p is 0.9 while place 2 is shown, and 0.1 without."""

    title = "p(y)"

    def ask(self, ids, targets):
        log_p = np.log(np.where(ids[:, 2] == MASK, 0.1, 0.9))
        return Said(log_p, np.log1p(-np.exp(log_p)))


def curve(values, orders=400, seed=0):
    shown, places = np.arange(4), np.arange(4)
    return follow(OneToken(), shown, places, np.zeros(0, np.int64), np.array(values, float), MASK, orders, seed)


def test_the_best_order_falls_at_once_and_the_worst_last():
    best, worst = curve([0, 0, 1, 0]), curve([1, 1, 0, 1])
    assert best.probs == pytest.approx([0.9, 0.1, 0.1, 0.1, 0.1])
    assert worst.probs == pytest.approx([0.9, 0.9, 0.9, 0.9, 0.1])
    # a random order hides place 2 among its first k with chance k / 4
    assert best.random == pytest.approx(0.9 - 0.8 * np.arange(5) / 4, abs=0.08)
    assert best.shares == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert best.area == pytest.approx(np.trapezoid(best.random - best.probs, best.shares))
    assert best.area == pytest.approx(0.3, abs=0.05)  # 0.8 · 3/8
    assert best.relative > 0.7 > 0 > worst.relative


def test_the_relative_area_is_one_for_whoever_is_at_the_end_at_once():
    made = Curve(np.arange(3), np.array([0.1, 0.1, 0.1]), np.array([0.9, 0.5, 0.1]), 1, 0)
    assert made.relative == pytest.approx(1.0)
    flat = Curve(np.arange(3), np.full(3, 0.5), np.full(3, 0.5), 1, 0)
    assert math.isnan(flat.relative)


@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_every_curve_begins_with_all_shown_and_ends_with_all_hidden(seed):
    found = explain(Engine(besag.Table.random(3, 4, seed=seed, concentration=1.0)), "s0 s1 [MASK] s2", "s0", curve=True)
    assert found.curve.probs[0] == pytest.approx(math.exp(found.log_prob), rel=1e-9)
    assert found.curve.random[0] == pytest.approx(found.curve.probs[0], rel=1e-9)
    assert found.curve.random[-1] == pytest.approx(found.curve.probs[-1], rel=1e-9)


def test_what_is_hidden_is_what_is_most_important():
    law = besag.Table.random(3, 4, seed=3, concentration=1.0)
    found = explain(Engine(law), "s0 s2 [MASK] s1", "s1", curve=True, orders=3)
    weights = law.log_probs.exp().numpy()
    shown = {0: 0, 1: 2, 3: 1}
    for step, place in enumerate([None, *(one.position for one in found.top(3))]):
        shown.pop(place, None)
        index = [shown.get(at, slice(None)) for at in range(4)]
        whole = weights[tuple(index)].sum()
        index[2] = 1
        assert found.curve.probs[step] == pytest.approx(weights[tuple(index)].sum() / whole, rel=1e-9)


def test_a_long_text_has_few_steps_and_the_same_seed_the_same_orders():
    places = np.arange(100)

    class Sum:
        title = "p(y)"

        def ask(self, ids, targets):
            p = 0.9 - 0.8 * (ids == MASK).mean(1)
            return Said(np.log(p), np.log1p(-p))

    nothing = np.zeros(0, np.int64)
    shown = np.full(100, 1)
    one, other = (follow(Sum(), shown, places, nothing, np.zeros(100), MASK, 3, seed) for seed in (1, 1))
    assert len(one.hidden) == 21
    assert (one.random == other.random).all()
    assert one.area == pytest.approx(0, abs=1e-12)  # no order is better than another
