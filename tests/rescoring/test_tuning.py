"""Line search against brute force over all breakpoints, for one weight and for several."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.rescoring.metrics import Metric, MetricName
from besag.rescoring.ranking import Board
from besag.rescoring.tuning import Interval, _Search, tuned

GRID = [0.05 * step for step in range(41)]  # what was searched before
SEEDS = st.integers(0, 2**32 - 1)


class Rate(Metric):
    """Errors over words, in per cent: WER without an aligner."""

    name: MetricName = "wer"
    higher, errors = False, True

    def statistics(self, references, hypotheses):
        raise NotImplementedError

    def value(self, sums) -> float:
        return float(100 * sums[0] / sums[1]) if sums[1] else float("nan")


class FScore(Metric):
    """2 · matches / (hypothesis length + reference length), in per cent: like BLEU, not a mean over utterances."""

    name: MetricName = "chrf"
    higher, errors = True, False

    def statistics(self, references, hypotheses):
        raise NotImplementedError

    def value(self, sums) -> float:
        return float(200 * sums[0] / (sums[1] + sums[2]))


METRICS = (Rate(), FScore())


def board(seed: int, metric: Metric, models: int = 1, lists: int = 9, most: int = 5, zeros: float = 0.1) -> Board:
    """Lists of several lengths, with equal scores, gaps and hypotheses of probability 0 among them."""
    draw = np.random.default_rng(seed)
    first = draw.normal(scale=3, size=(lists, most)).round(draw.integers(0, 4))
    added = draw.normal(scale=3, size=(models, lists, most)).round(draw.integers(0, 4))
    added[draw.random(added.shape) < zeros] = -np.inf
    added[:, draw.random(lists) < 0.1, 0] = np.nan
    short = np.arange(most) >= draw.integers(1, most + 1, lists)[:, None]
    words = np.broadcast_to(draw.integers(3, 9, lists)[:, None], (lists, most))
    wrong = draw.integers(0, 9, (lists, most))
    statistics = [wrong, words] if metric.errors else [np.minimum(wrong, words), wrong + 3, words]
    return Board(np.where(short, -np.inf, first), np.where(short, 0.0, added), np.stack(statistics, -1).astype(float))


def loss(one: Board, metric: Metric, weights) -> float:
    return metric.loss(one.sums(one.choose(weights)))


def brute(one: Board, metric: Metric) -> float:
    """The lowest loss over [0, ∞): at 0, and between every two crossings of any two hypotheses."""
    crossings = {0.0}
    for first, added in zip(one.first.tolist(), one.added[0].tolist(), strict=True):
        for (c, m), (d, n) in itertools.combinations(zip(first, added, strict=True), 2):
            if np.isfinite([c, m, d, n]).all() and m != n:
                crossings.add(max(0.0, (c - d) / (n - m)))
    edges = sorted(crossings)
    points = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(edges)), 2 * edges[-1] + 1]
    return min(loss(one, metric, [point]) for point in points)


@given(SEEDS, st.sampled_from(METRICS))
def test_one_weight_is_the_best_there_is(seed: int, metric: Metric) -> None:
    one = board(seed, metric)
    [weight] = tuned(one, metric, [0])
    assert weight >= 0
    assert loss(one, metric, [weight]) == brute(one, metric)


@given(SEEDS, st.sampled_from(METRICS), st.sampled_from([None, 0, 1]))
def test_the_sums_of_every_interval_are_those_of_its_winners(seed: int, metric: Metric, point: int | None) -> None:
    one = board(seed, metric, models=2)
    draw = np.random.default_rng(seed)
    start = draw.random(2) if point is None else np.eye(2)[point]
    direction = draw.normal(size=2)
    end = min((s / -d for s, d in zip(start, direction, strict=True) if d < 0), default=np.inf)
    search = _Search(one, metric)
    edges, sums = search.sweep(start, direction, end)
    highs = [*edges[1:], end if np.isfinite(end) else 2 * edges[-1] + 1]
    for low, high, total in zip(edges, highs, sums, strict=True):
        if high - low > 1e-9:
            middle = start + (low + high) / 2 * direction
            assert one.sums(one.choose(middle)).tolist() == total.tolist()


@given(SEEDS, st.sampled_from(METRICS), st.integers(1, 3))
def test_no_worse_than_the_grid_and_than_no_weight(seed: int, metric: Metric, models: int) -> None:
    one = board(seed, metric, models)
    found = tuned(one, metric, range(models))
    assert (found >= 0).all()
    lowest = loss(one, metric, found)
    for k, weight in itertools.product(range(models), GRID):
        assert lowest <= loss(one, metric, weight * np.eye(models)[k])


@given(SEEDS, st.integers(1, 2))
def test_the_order_of_utterances_changes_nothing(seed: int, models: int) -> None:
    one = board(seed, METRICS[0], models)
    other = one.of_rows(np.random.default_rng(seed).permutation(len(one.first)))
    assert tuned(one, METRICS[0], range(models)).tolist() == tuned(other, METRICS[0], range(models)).tolist()


def lines(*lists: list[tuple[float, float, int]]) -> Board:
    """Each hypothesis by its first score, its language model's score and its errors of 10 words."""
    values = np.array(lists, np.float64)
    return Board(values[..., 0], values[None, ..., 1], np.stack([values[..., 2], np.full(values.shape[:2], 10.0)], -1))


def test_an_optimum_beyond_the_old_grid_is_found() -> None:
    one = lines([(0.0, -1.0, 3), (-5.0, 0.0, 1)], [(0.0, -1.0, 2), (-9.0, 0.0, 4)], [(0.0, 0.0, 1), (-1.0, -2.0, 9)])
    [weight] = tuned(one, METRICS[0], [0])  # the first list turns at 5, the second, wrongly, at 9
    assert 5 < weight < 9
    assert loss(one, METRICS[0], [weight]) == pytest.approx(100 * 4 / 30)
    assert min(loss(one, METRICS[0], [at]) for at in GRID) == pytest.approx(100 * 6 / 30)


def test_a_narrow_optimum_is_found() -> None:
    one = lines([(0.0, 0.0, 5), (-0.1, 1.0, 0)], [(0.0, 0.0, 0), (-0.10001, 1.0, 5)])
    [weight] = tuned(one, METRICS[0], [0])
    assert 0.1 < weight < 0.10001
    assert loss(one, METRICS[0], [weight]) == 0.0


def test_of_equals_the_middle_of_the_widest_but_zero_where_nothing_is_gained() -> None:
    turns = lines([(0.0, 0.0, 1), (-0.4, 1.0, 0)], [(0.0, 0.0, 0), (-0.8, 1.0, 1)])
    assert tuned(turns, METRICS[0], [0]).tolist() == [0.6]
    wrong = lines([(0.0, 0.0, 0), (-0.4, 1.0, 1)])
    assert tuned(wrong, METRICS[0], [0]).tolist() == [0.0]
    same = lines([(0.0, 0.0, 1), (-0.4, 1.0, 1)])
    assert tuned(same, METRICS[0], [0]).tolist() == [0.0]
    last = lines([(0.0, 0.0, 1), (-4.0, 1.0, 0)])
    assert tuned(last, METRICS[0], [0]).tolist() == [10.0]  # 4 tan(3π/8) = 9.66: the scores spread alike at 4


@given(SEEDS, st.sampled_from([2.0**-20, 2.0**20]))
def test_another_unit_of_the_scores_is_another_unit_of_the_weight(seed: int, unit: float) -> None:
    one = board(seed, METRICS[0])
    other = Board(one.first, one.added * unit, one.statistics)
    [first], [second] = tuned(one, METRICS[0], [0]), tuned(other, METRICS[0], [0])
    assert second * unit == pytest.approx(first, rel=0.5)  # digits are rounded
    assert loss(other, METRICS[0], [second]) == loss(one, METRICS[0], [first])


def test_a_weight_has_few_digits_and_stays_inside() -> None:
    for low, high, inside in (
        (0.36, 0.72, 0.5), (0.123, 0.124, 0.1235), (1234.0, 1235.0, 1234.5), (0.0, 1e-9, 5e-10), (0.0, np.inf, 1.0),
        (3e20, np.inf, 6e20),
    ):  # fmt: skip
        found = Interval(low, high, 0.0).inside
        assert low < found < high
        assert found == inside


def test_probability_zero_never_wins_by_a_positive_weight() -> None:
    one = lines([(0.0, -np.inf, 1), (-9.0, -50.0, 0), (-8.0, -np.inf, 5)])
    assert one.choose([0.0]).tolist() == [0]  # the model has no influence
    assert one.choose([1e-9]).tolist() == [1]
    assert not np.isnan(one.combined([0.0])).any()
    [weight] = tuned(one, METRICS[0], [0])
    assert weight > 0
    assert loss(one, METRICS[0], [weight]) == 0.0
    wrong = lines([(0.0, -np.inf, 0), (-9.0, -50.0, 1)])
    assert tuned(wrong, METRICS[0], [0]).tolist() == [0.0]  # an optimum at 0 alone
    nothing = lines([(0.0, -np.inf, 1), (-1.0, -np.inf, 0)])
    assert nothing.choose([1.0]).tolist() == [0]  # of equals the earlier


def test_several_weights_where_each_alone_is_of_no_use() -> None:
    first = np.array([[0.0, -1.0], [0.0, -1.0]])
    added = np.array([[[0.0, 3.0], [0.0, -1.5]], [[0.0, -1.5], [0.0, 3.0]]])  # both together turn both lists
    statistics = np.array([[[4.0, 10], [0, 10]], [[4, 10], [0, 10]]])
    one = Board(first, added, statistics)
    found = tuned(one, METRICS[0], [0, 1])
    assert loss(one, METRICS[0], found) == 0.0
    assert loss(one, METRICS[0], tuned(one, METRICS[0], [0])) == 20.0
    assert found.tolist() == tuned(one, METRICS[0], [0, 1]).tolist()  # seeded
    assert tuned(one, METRICS[0], [1])[0] == 0.0  # a model that is not used


def test_rows_and_empty_references() -> None:
    one = lines([(0.0, 0.0, 1), (-0.4, 1.0, 0)], [(0.0, 0.0, 0), (-0.2, 1.0, 5)])
    assert tuned(one, METRICS[0], [0], np.array([True, False]))[0] > 0.4
    assert tuned(one, METRICS[0], [0], np.array([False, True])).tolist() == [0.0]
    empty = Board(one.first, one.added, np.zeros((2, 2, 2)))
    with pytest.raises(BesagError, match="references"):
        tuned(empty, METRICS[0], [0])
