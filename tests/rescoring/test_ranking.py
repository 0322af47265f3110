"""The log-linear combination, by hand and beside a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.rescoring.metrics import metric_named
from besag.rescoring.ranking import Board, normalised


def test_norms_by_hand() -> None:
    totals, tokens = np.array([-6.0, -7.0]), np.array([1.0, 7.0])
    assert normalised(totals, tokens, "none").tolist() == [-6, -7]
    assert normalised(totals, tokens, "length").tolist() == [-6, -1]
    np.testing.assert_allclose(normalised(totals, tokens, "gnmt", 1.0), [-6, -3.5])
    np.testing.assert_allclose(normalised(totals, tokens, "gnmt", 2.0), [-6, -1.75])
    assert np.isnan(normalised(np.array([0.0]), np.array([0.0]), "length")).all()


def test_the_winner_by_hand() -> None:
    first = np.array([[-1.0, -2.0], [-1.0, -np.inf]])
    board = Board(first, np.array([[[-9.0, -5.0], [-3.0, 0.0]]]), None)
    assert board.combined([0.5]).tolist() == [[-5.5, -4.5], [-2.5, -np.inf]]
    assert board.choose([0.5]).tolist() == [1, 0]
    assert board.choose([0.25]).tolist() == [0, 0]  # a tie: −3.25 each
    assert board.choose([0.0]).tolist() == [0, 0]


def test_a_list_with_a_gap_is_left_alone() -> None:
    board = Board(np.array([[-1.0, -2.0]]), np.array([[[np.nan, 0.0]], [[-5.0, -1.0]]]), None)
    assert board.choose([9.0, 0.0]).tolist() == [0]
    assert board.choose([9.0, 1.0]).tolist() == [1]  # the other model still counts


def test_probability_zero_times_no_weight_is_nothing() -> None:
    board = Board(np.array([[-1.0, -2.0]]), np.array([[[-np.inf, -9.0]], [[-1.0, -np.inf]]]), None)
    assert board.combined([0.0, 0.0]).tolist() == [[-1, -2]]
    assert board.combined([0.5, 0.0]).tolist() == [[-np.inf, -6.5]]
    assert board.choose([1e-9, 0.0]).tolist() == [1]
    assert board.choose([0.0, 1.0]).tolist() == [0]
    assert board.choose([1.0, 1.0]).tolist() == [0]  # none is possible: the earlier


@given(st.integers(0, 2**32 - 1))
def test_any_weights_beside_a_loop(seed) -> None:
    draw = np.random.default_rng(seed)
    first, added, weights = draw.normal(size=(4, 3)), draw.normal(size=(2, 4, 3)), draw.random(2)
    chosen = Board(first, added, None).choose(weights)
    for utt in range(4):
        scores = [first[utt, h] + sum(weights[k] * added[k, utt, h] for k in range(2)) for h in range(3)]
        assert chosen[utt] == max(range(3), key=scores.__getitem__)


def test_the_oracle() -> None:
    pytest.importorskip("jiwer")
    statistics = np.array([[[2.0, 5], [1, 5]], [[1, 4], [0, 0]]])
    board = Board(np.array([[-1.0, -2.0], [-1.0, -np.inf]]), np.zeros((1, 2, 2)), statistics)
    assert board.oracle(metric_named("wer")).tolist() == [1, 0]  # what is not there has no errors, and is not taken
    assert board.sums(board.choose([0.0])).tolist() == [3, 9]
    assert board.of_rows(np.array([True, False])).sums(np.array([0])).tolist() == [2, 5]
