"""Systems with their weights, judged: what each chooses, how good that is, and does it differ from the first pass?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from besag.arrays import Floats, Ints
from besag.rescoring.lists import NBest
from besag.rescoring.metrics import Metric
from besag.rescoring.ranking import Board
from besag.rescoring.result import Curve, Rescoring, System
from besag.rescoring.significance import matched_pairs, paired_bootstrap
from besag.statistics import holm

GRID = np.round(np.arange(41) * 0.05, 2)  # 0, 0.05 … 2: of the curve


def judge(
    systems: Sequence[System],
    lists: Sequence[NBest],
    board: Board,
    metric: Metric | None,
    names: Sequence[str],  # of the scorers
    fold: Ints,
    unscored: Mapping[str, int],
    about: tuple[str, ...],
    *,
    resamples: int,
    seed: int,
) -> Rescoring:
    """Without a metric (there are no references) systems choose, and nobody says how well."""
    nothing = np.zeros((1, len(names)))
    first = System("first pass", nothing, board.choose(nothing[0]), (0,))
    chosen = [replace(one, chosen=choice(board, one.weights, fold)) for one in systems]
    if metric is None:
        return Rescoring(tuple(lists), board, None, first, None, tuple(chosen), None, fold, unscored, about)
    before = board.of(first.chosen)
    first = replace(first, value=metric.value(before.sum(0)))
    found = [_beside(one, board, metric, before, resamples, seed) for one in chosen]
    corrected = holm([one.p for one in found]).tolist()
    best = board.oracle(metric)
    return Rescoring(
        tuple(lists),
        board,
        metric,
        first,
        System("oracle", np.empty((0, 0)), best, value=metric.value(board.of(best).sum(0))),
        tuple(replace(one, p_holm=p) for one, p in zip(found, corrected, strict=True)),
        curve(board, metric, names, max(one.weights.max() for one in systems)),
        fold,
        unscored,
        about,
    )


def choice(board: Board, weights: Floats, fold: Ints) -> Ints:
    """(U,) by the weights of each utterance's own fold."""
    each = np.stack([board.choose(own) for own in weights])  # (F, U)
    own: Ints = each[fold, np.arange(len(fold))]
    return own


def curve(board: Board, metric: Metric, names: Sequence[str], largest: float = 0.0) -> Curve:
    """The metric of each scorer alone at weights from 0 to 2, or beyond the largest weight where that is more."""
    grid = GRID if largest <= GRID[-1] else np.linspace(0.0, 1.25 * largest, len(GRID))
    values = {
        name: np.array([metric.value(board.sums(board.choose(weight * row))) for weight in grid])
        for name, row in zip(names, np.eye(len(names)), strict=True)
    }
    return Curve(grid, values)


def _beside(one: System, board: Board, metric: Metric, before: Floats, resamples: int, seed: int) -> System:
    after = board.of(one.chosen)
    drawn = paired_bootstrap(metric, after, before, resamples=resamples, seed=seed)
    judged = replace(
        one, value=metric.value(after.sum(0)), low=drawn.low, high=drawn.high, p=drawn.p, p_bootstrap=drawn.p
    )
    if not metric.errors:
        return judged
    pairs = matched_pairs(after[:, 0], before[:, 0])
    return replace(judged, z=pairs.z, p=pairs.p)
