"""Weights that optimise a corpus metric on tuning lists, by exact line search over breakpoints (Och 2003).

The metric is a function of statistics summed over lists (`metrics.py`: edit counts for WER, CER and TER, n-gram counts
for BLEU and chrF), so it changes only where the winner of a list changes. On a line of weights λ(t) = a + t·d with
t ≥ 0, hypothesis h of list u has the score

    s_uh(t) = c_uh + t·m_uh,    c_uh = s_first(h) + Σ_k a_k s_k(h),    m_uh = Σ_k d_k s_k(h),

which is linear in t. The winner of u is the upper envelope max_h s_uh(t): convex and piecewise linear, with at most
H − 1 breakpoints t = (c_w − c_v) / (m_v − m_w), at each of which a steeper v replaces w. The breakpoints of all lists
cut the line into open intervals with constant winners. The statistics of an interval are those of the interval before
it plus Σ (statistics of v − statistics of w) over the winners that change, so one sweep gives the metric of every
interval, and the best one is the global optimum on the line: there is no grid and no upper end.

One system: the line λ(t) = t. The weight is optimal over [0, ∞).

Several systems: line searches through the current weights along each coordinate and along random directions, clipped to
λ ≥ 0, until none improves the metric; from λ = 0, from the optimum of each system alone, from their mean, and from
random starts. The best end is returned. It is never worse than λ = 0 or than any system alone; a global optimum is not
guaranteed. All random numbers come from `seed`.

Conventions:
- λ = 0 is preferred among equals, so a weight of 0 means that no weight helped.
- Otherwise the weight lies in the middle of the widest best interval, rounded to the fewest digits that stay inside.
  Width and middle are those of the angle arctan(t / s), where s is the weight at which the language model's scores
  spread over a list as those of the first pass do. So the unit of a score makes no difference, and (t, ∞) has a middle.
- 0 · (−∞) = 0: a model with weight 0 has no influence. With any λ_k > 0, a hypothesis with s_k = −∞ scores −∞ and loses
  to every finite one. So λ = 0 may differ from the limit λ → 0, and end points with a weight of 0 are evaluated apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Floats, Ints
from besag.errors import BesagError
from besag.rescoring.metrics import Metric
from besag.rescoring.ranking import Board

DIRECTIONS = 4  # random ones per round, next to the coordinates
STARTS = 2  # random ones
MAX_ROUNDS = 50
DIGITS = 17  # of a float64
EPSILON = 1e-14


class Interval(NamedTuple):
    """An open interval of t in which the loss is constant."""

    low: float
    high: float
    loss: float
    scale: float = 1.0  # the t of the angle π/4

    @property
    def width(self) -> float:
        """Its angle, at most π/2."""
        return math.atan2(self.scale, self.low) - math.atan2(self.scale, self.high)

    @property
    def inside(self) -> float:
        """The number of fewest digits inside that rounds the middle."""
        middle = self.scale / math.tan((math.atan2(self.scale, self.low) + math.atan2(self.scale, self.high)) / 2)
        if not self.low < middle < self.high:  # too narrow for an angle
            middle = self.low + (self.high - self.low) / 2
        for digits in range(1, DIGITS + 1):
            short = float(f"{middle:.{digits}g}")
            if self.low < short < self.high:
                return short
        return middle


def tuned(
    board: Board, metric: Metric, used: Sequence[int], rows: NDArray[np.bool_] | None = None, seed: int = 0
) -> Floats:
    """Return (K,) weights with the best metric found on `rows` of the lists (None: all); 0 for models not in `used`."""
    search = _Search(board if rows is None else board.of_rows(rows), metric)
    zero = np.zeros(len(board.added))
    if np.isnan(search.loss(zero)):
        raise BesagError("λ cannot be tuned: all references of its tuning lists are empty. Give lists with references")
    units = [row for k, row in enumerate(np.eye(len(zero))) if k in used]
    alone = [search.along(zero, unit) for unit in units]
    if len(units) == 1:
        return alone[0]
    random = np.random.default_rng(seed)
    scale = search.scale[list(used)]
    scattered = _combined(units, scale * random.exponential(size=(STARTS, len(units))))
    starts = [zero, *alone, np.mean(alone, 0), *scattered]
    best = min([zero, *(_descend(search, start, units, scale, random) for start in starts)], key=search.loss)
    for unit in units if best.any() else ():
        best = search.centred(best, unit)
    return best


def _combined(units: Sequence[Floats], points: Floats) -> list[Floats]:
    """Return points (n, |used|) as weights of all models, (K,) each."""
    return list(points @ np.array(units))


def _descend(
    search: _Search, point: Floats, units: Sequence[Floats], scale: Floats, random: np.random.Generator
) -> Floats:
    """Search along coordinates and random directions until a round improves nothing."""
    for _ in range(MAX_ROUNDS):
        before = search.loss(point)
        drawn = _combined(units, scale * random.normal(size=(DIRECTIONS, len(units))))
        for direction in (*units, *drawn):
            point = search.along(point, direction)
        if not search.loss(point) < before:
            break
    return point


class _Search:
    """Line searches on one board."""

    def __init__(self, board: Board, metric: Metric) -> None:
        assert board.statistics is not None
        self.board, self.metric = board, metric
        self.statistics: Floats = board.statistics  # (U, H, k)

    def loss(self, weights: Floats) -> float:
        return self.metric.loss(self.board.sums(self.board.choose(weights)))

    @cached_property
    def scale(self) -> Floats:
        """(K,) the weight at which a model's scores spread over a list as those of the first pass do, on average."""
        there = np.isfinite(self.board.first)
        first, *added = (
            math.fsum(np.where(there, one, -np.inf).max(1) - np.where(there, one, np.inf).min(1))
            for one in (self.board.first, *self.board.finite)
        )  # exact sums: in whatever order the lists come
        return np.array([first / one if first and one else 1.0 for one in added])

    def along(self, point: Floats, direction: Floats) -> Floats:
        """Return the best weights on the line through a point, within λ ≥ 0: the point unless others are better."""
        start, end = _clipped(point, direction)
        best, lowest = point, self.loss(point)
        ends = [start] if end == np.inf else [start, _at(start, direction, end)]
        for other in ends:
            if (loss := self.loss(other)) < lowest:
                best, lowest = other, loss
        for interval in sorted(self.intervals(start, direction, end), key=lambda one: (one.loss, -one.width, one.low)):
            if interval.loss >= lowest:
                break
            inside = _at(start, direction, interval.inside)
            if (loss := self.loss(inside)) < lowest:  # differs from the interval's only where rounding decides a winner
                best, lowest = inside, loss
        return best

    def centred(self, point: Floats, unit: Floats) -> Floats:
        """Return the point with one weight in the middle of its interval, unless that is worse."""
        at, rest = float(point @ unit), point * (1 - unit)
        own = next((one for one in self.intervals(rest, unit) if one.low < at < one.high), None)
        moved = point if own is None else rest + own.inside * unit
        return moved if self.loss(moved) <= self.loss(point) else point

    def intervals(self, start: Floats, direction: Floats, end: float = np.inf) -> list[Interval]:
        """The loss on λ = start + t·direction for 0 < t < end, with neighbours of one loss as one interval."""
        edges, sums = self.sweep(start, direction, end)
        losses = self.metric.losses(sums)
        first = np.flatnonzero(np.concatenate([[True], losses[1:] != losses[:-1]]))
        lows, highs = edges[first], np.append(edges[first][1:], end)
        scale = float(1 / np.linalg.norm(direction / self.scale))
        return [
            Interval(low, high, loss, scale)
            for low, high, loss in zip(lows.tolist(), highs.tolist(), losses[first].tolist(), strict=True)
        ]

    def sweep(self, start: Floats, direction: Floats, end: float = np.inf) -> tuple[Floats, Floats]:
        """(B,) where each interval begins, ascending from 0, and (B, k) the summed statistics in it."""
        constant, slope = self._lines(start, direction)
        utterances = np.arange(len(constant))
        winner = _last_best(constant, constant.max(1), slope)
        sums = self.statistics[utterances, winner].sum(0)
        changes = list(_breakpoints(constant, slope, winner, end))
        if not changes:
            return np.zeros(1), sums[None]
        where, which, before, after = (np.concatenate(column) for column in zip(*changes, strict=True))
        order = where.argsort(kind="stable")
        steps = (self.statistics[which, after] - self.statistics[which, before])[order]
        edges, totals = np.append(0.0, where[order]), np.concatenate([sums[None], sums + steps.cumsum(0)])
        last = np.append(edges[1:] > edges[:-1], True)  # of those at one breakpoint
        edges, totals = edges[last], totals[last]
        new = np.append(True, (totals[1:] != totals[:-1]).any(1))
        return edges[new], totals[new]

    def _lines(self, start: Floats, direction: Floats) -> tuple[Floats, Floats]:
        """(U, H) c and m of each hypothesis; −∞ where it cannot win inside the line."""
        board = self.board
        constant, slope = board.first + board.weighted(start), board.weighted(direction)
        out = np.isinf(constant) | board.impossible[(start > 0) | (direction != 0)].any(0)
        return np.where(out, -np.inf, constant), np.where(out, -np.inf, slope)


def _clipped(point: Floats, direction: Floats) -> tuple[Floats, float]:
    """Where the line through a point enters λ ≥ 0, and the t at which it leaves."""
    rising, falling = direction > 0, direction < 0
    back = float((point[rising] / direction[rising]).min()) if rising.any() else 0.0
    start = _at(point, direction, -back)
    end = float((start[falling] / -direction[falling]).min()) if falling.any() else np.inf
    return start, end


def _at(start: Floats, direction: Floats, t: float) -> Floats:
    """The weights at t; exactly 0 where the line meets a bound, which rounding would miss."""
    point = start + t * direction
    return np.where(point > EPSILON * (np.abs(start) + np.abs(t * direction)), point, 0.0)


def _breakpoints(
    constant: Floats, slope: Floats, winner: Ints, end: float
) -> Iterator[tuple[Floats, Ints, Ints, Ints]]:
    """Follow all upper envelopes at once, at most H − 1 times: t, list, hypothesis that loses, hypothesis that wins."""
    utterances = np.arange(len(constant))
    t = np.zeros(len(constant))
    while len(utterances):
        c, m = constant[utterances], slope[utterances]
        own = np.arange(len(utterances))
        steeper = m > m[own, winner][:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            crossing = (c[own, winner][:, None] - c) / (m - m[own, winner][:, None])
        crossing = np.where(steeper, np.maximum(crossing, t[:, None]), np.inf)
        nearest = crossing.min(1)
        after = _last_best(-crossing, -nearest, m)
        on = nearest < end
        utterances, before, winner, t = utterances[on], winner[on], after[on], nearest[on]
        if len(utterances):
            yield t, utterances, before, winner


def _last_best(values: Floats, best: Floats, slope: Floats) -> Ints:
    """(U,) of the hypotheses with the best value the steepest, which wins from there on; of equals the first."""
    found: Ints = np.where(values == best[:, None], slope, -np.inf).argmax(1)
    return found
