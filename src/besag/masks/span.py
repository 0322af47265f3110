"""Runs of neighbours: SpanBERT's spans, whose lengths are geometric.

Starting places come in random order, each place with the same chance. A place that is hidden already is passed over;
any other begins a span of ℓ words (or tokens), P(ℓ) ∝ (1 − p)^(ℓ−1) for 1 ≤ ℓ ≤ longest, which ends early at the end of
its passage or at a special token. Words that two spans share count once. This goes on until the budget is spent: the
last span is shortened to what is left.

Which starting places are passed over depends on all before them; `_begin` settles that for all passages at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from besag import noise
from besag.arrays import Bools, Floats, Ints
from besag.errors import BesagError, quoted
from besag.masks.law import LAWS, MaskLaw
from besag.masks.passages import Passages
from besag.masks.units import budget, gather, take, uniform_turns
from besag.noise import Training

LONGEST = 1000  # units of a run, at most: each one more is looked at for every unit of a batch


@LAWS.register
@dataclass(frozen=True)
class Span(MaskLaw):
    name: ClassVar[str] = "span"
    title: ClassVar[str] = "runs of neighbours, of geometric length (SpanBERT)"
    cite: ClassVar[tuple[str, ...]] = ("joshi2020",)

    chance: Annotated[float, "p: of a span to end after each word"] = 0.2
    longest: Annotated[int, "longest span"] = 10
    at: Annotated[Literal["word", "token"], "where a span may begin and end, and what its length counts"] = "word"

    def __post_init__(self) -> None:
        if not 0 < self.chance <= 1:
            raise BesagError(f"chance is {self.chance}: the chance that a span ends, above 0 and at most 1.")
        if not 1 <= self.longest <= LONGEST:
            raise BesagError(f"longest is {quoted(self.longest)}: a span has at least one word, and at most {LONGEST}.")

    def lengths(self) -> Floats:
        """(longest,) the chance of each length 1, 2, …"""
        weight = (1 - self.chance) ** np.arange(self.longest)
        chances: Floats = weight / weight.sum()
        return chances

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        unit = passages.word if self.at == "word" else np.where(passages.free, passages.place, -1)
        return hide_runs(passages, unit, self.lengths(), budget(passages, rate, seed), seed)


def hide_runs(passages: Passages, unit: Ints, lengths: Floats, limit: Ints, seed: int) -> Bools:
    """(T,) runs of units, begun in random order, of lengths 1, 2, … with the given chances, until the limit (R,)."""
    units = gather(passages, unit)
    start = units.first  # (U,) the units stand in the order of the text
    turn = uniform_turns(passages, seed)[start]
    drawn = noise.uniform(seed, Training.SPAN_LENGTH, passages.draw[passages.row[start]], passages.place[start])
    length = 1 + np.searchsorted(np.cumsum(lengths)[:-1], drawn, side="right")
    length = np.minimum(length, _room(passages, units.token, units.member, len(start)))
    began = _begin(turn, length, len(lengths))
    hidden_in = _earliest(np.where(began, turn, np.inf), length, len(lengths))  # (U,) whose span hides it
    by_token = np.zeros(len(unit))
    by_token[units.token] = hidden_in[units.member]
    return take(passages, unit, by_token, limit)  # words of one span are equal there: they go from left to right


def _room(passages: Passages, token: Ints, member: Ints, count: int) -> Ints:
    """(U,) how many units follow one another from each on, itself counted, without a gap between their tokens."""
    gap = (passages.row[token][1:] != passages.row[token][:-1]) | (np.diff(token) != 1)
    last = np.append(gap & (member[1:] != member[:-1]), True)[: len(member)]
    ends, number = member[last], np.arange(count)  # the units before a gap
    room: Ints = ends[np.searchsorted(ends, number)] - number + 1
    return room


def _begin(turn: Floats, length: Ints, longest: int) -> Bools:
    """(U,) does a span begin at each unit, or did one that began before its turn hide it already?

    A unit is settled once every unit to its left that reaches it with an earlier turn is settled. In each round that
    is true at least of the earliest that are left; chains of such units are short, so a few rounds settle all.
    """
    began, unsettled = np.zeros(len(turn), dtype=np.bool_), np.ones(len(turn), dtype=np.bool_)
    while unsettled.any():
        at = np.flatnonzero(unsettled)
        waits, covered = np.zeros(len(at), dtype=np.bool_), np.zeros(len(at), dtype=np.bool_)
        for back in range(1, longest):
            other = np.maximum(at - back, 0)
            reaches = (at >= back) & (length[other] > back) & (turn[other] < turn[at])
            covered |= reaches & began[other]
            waits |= reaches & unsettled[other]
        settled = covered | ~waits
        began[at[settled & ~covered]] = True
        unsettled[at[settled]] = False
    return began


def _earliest(turn: Floats, length: Ints, longest: int) -> Floats:
    """(U,) the earliest turn among the spans that hold each unit."""
    earliest = turn.copy()
    for back in range(1, min(longest, len(turn))):
        reaches = length[:-back] > back
        earliest[back:] = np.where(reaches, np.minimum(earliest[back:], turn[:-back]), earliest[back:])
    return earliest
