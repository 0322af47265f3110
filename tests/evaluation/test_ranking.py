"""NDCG and recall at the top, against hand computations and against ProteinGym's definitions as plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.evaluation.ranking import ndcg, top_recall

N = 30


def by_loops(measured, scores):
    """ProteinGym's NDCG where no two scores are equal."""
    gains = [(y - min(measured)) / (max(measured) - min(measured)) for y in measured]
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    k = len(scores) // 10
    found = sum(gains[i] / math.log2(r + 2) for r, i in enumerate(order[:k]))
    best = sum(g / math.log2(r + 2) for r, g in enumerate(sorted(gains, reverse=True)[:k]))
    return found / best


def test_by_hand():
    measured = np.arange(20.0)  # gains i/19, k = 2
    assert ndcg(measured, measured) == pytest.approx(1)
    scores = measured.copy()
    scores[[18, 0]] = scores[[0, 18]]  # second place goes to what was measured worst
    discount = 1 / math.log2(3)
    assert ndcg(measured, scores) == pytest.approx(1 / (1 + 18 / 19 * discount))
    assert top_recall(measured, scores) == 0.5  # above the 90th percentile, 17.1: 18 and 19


def test_equal_scores_share_their_gain():
    measured = np.arange(20.0)
    alike = np.zeros(20)
    assert ndcg(measured, alike) == pytest.approx(0.5 * (1 + 1 / math.log2(3)) / (1 + 18 / 19 / math.log2(3)))


def test_where_there_is_no_top():
    assert math.isnan(ndcg(np.arange(9.0), np.arange(9.0)))
    assert math.isnan(ndcg(np.zeros(20), np.arange(20.0)))
    assert math.isnan(top_recall(np.zeros(20), np.arange(20.0)))


@given(st.permutations(range(N)), st.lists(st.floats(-5, 5), min_size=N, max_size=N, unique=True))
def test_the_definition(order, measured):
    measured, scores = np.array(measured), np.array(order, float)
    if np.ptp(measured) < 1e-6:
        return
    assert ndcg(measured, scores) == pytest.approx(by_loops(measured.tolist(), scores.tolist()))
    assert 0 <= ndcg(measured, scores) <= 1 + 1e-12
    assert 0 <= top_recall(measured, scores) <= 1
