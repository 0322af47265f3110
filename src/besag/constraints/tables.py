"""What tokens do to an automaton: from which state each leads to which, and what it adds to the count.

Tokens that do the same to every state are one class, so that what follows costs states × classes and not states × the
vocabulary. A torn token, one with bytes of an unfinished letter, may do several things, since its neighbours say which
letter it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.constraints.automaton import Automaton, Path
from besag.constraints.page import Page, Strings
from besag.places.filling import UNFINISHED


class Bounds(NamedTuple):
    """The least and the most that may be counted, for each state; +inf and −inf where there is no way."""

    low: Floats  # (S,)
    high: Floats  # (S,)

    @classmethod
    def at(cls, states: Bools) -> Bounds:
        """Nothing is counted yet in these states."""
        return cls(np.where(states, 0.0, np.inf), np.where(states, 0.0, -np.inf))

    def either(self, other: Bounds) -> Bounds:
        return Bounds(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def through(self, path: Path) -> Bounds:
        """Forward over a string, or over several, (S,) or (S, k)."""
        to, add = path
        after = Bounds.at(np.zeros(len(self.low), dtype=bool))
        here = (slice(None), *[None] * (to.ndim - 1))
        np.minimum.at(after.low, to, self.low[here] + add)
        np.maximum.at(after.high, to, self.high[here] + add)
        return after

    def before(self, path: Path) -> Bounds:
        """Backward over a string."""
        to, add = path
        return Bounds(self.low[to] + add, self.high[to] + add)


class Table(NamedTuple):
    """V tokens in K plain classes, then R torn ones."""

    of: Ints  # (V,) the class of each token
    joined: Bools  # (K + R,) to what stands before
    ends: Bools  # (K + R,) nothing is joined to it
    torn: Bools  # (K + R,) the next token may finish its last letter
    empty: Bools  # (K + R,) it writes nothing
    to: Ints  # (S, K)
    add: Ints  # (S, K)
    low: Floats  # (2, R, S, S) the least that is added on the way from one state to another, inf where there is none …
    high: Floats  # (2, R, S, S) … where it begins its own letters, and where it may finish a letter begun before

    def forward(self, start: Bounds, which: Bools, after_torn: bool) -> Bounds:
        """From before the letters of a place to behind them, by any token of some classes."""
        plain, torn = self._split(which)
        after = start.through((self.to[:, plain], self.add[:, plain]))
        for low, high in self._torn(torn, after_torn):
            after = after.either(Bounds((start.low[:, None] + low).min(0), (start.high[:, None] + high).max(0)))
        return after

    def backward(self, end: Bounds, which: Bools, after_torn: bool) -> Bounds:
        """From behind the letters of a place to before them."""
        plain, torn = self._split(which)
        before = Bounds.at(np.zeros(len(end.low), dtype=bool))
        if plain.any():
            to, add = self.to[:, plain], self.add[:, plain]
            before = Bounds((add + end.low[to]).min(1), (add + end.high[to]).max(1))
        for low, high in self._torn(torn, after_torn):
            before = before.either(Bounds((low + end.low).min(1), (high + end.high).max(1)))
        return before

    def lead(
        self, start: Bounds, end: Bounds, which: Bools, after_torn: bool, least: float, most: float
    ) -> Bools:  # fmt: skip
        """(K + R,) the classes, of some, by which a way leads from the start to the end with a right count."""
        plain, torn = self._split(which)
        found = np.zeros(len(which), dtype=bool)
        to, add = self.to[:, plain], self.add[:, plain]
        found[: len(plain)][plain] = _right(start, add, add, end.low[to], end.high[to], least, most).any(0)
        for index, (low, high) in zip(torn, self._torn(torn, after_torn), strict=True):
            found[len(plain) + index] = _right(start, low, high, end.low, end.high, least, most).any()
        return found

    def _split(self, which: Bools) -> tuple[Bools, Ints]:
        kinds = self.to.shape[1]
        return which[:kinds], np.flatnonzero(which[kinds:])

    def _torn(self, which: Ints, after_torn: bool) -> list[tuple[Floats, Floats]]:
        return [(self.low[int(after_torn), index], self.high[int(after_torn), index]) for index in which]


def _right(
    start: Bounds,
    low: Ints | Floats,
    high: Ints | Floats,
    after_low: Floats,
    after_high: Floats,
    least: float,
    most: float,
) -> Bools:
    """(S, …) is there a way from each state whose count may be right?"""
    fewest: Floats = start.low[:, None] + low + after_low
    many: Floats = start.high[:, None] + high + after_high
    right: Bools = (fewest < np.inf) & (fewest <= most) & (many >= least)
    return right


class Mark(NamedTuple):
    """The mark before or behind the letters of a place."""

    place: int
    behind: bool
    to: Ints  # (S,)


@dataclass(frozen=True, eq=False)
class Reader:
    """An automaton whose letters are tokens and strings."""

    automaton: Automaton
    marks: tuple[Mark, ...]
    table: Callable[[bool], Table]  # of tokens as they are written first in a text, or not

    @cached_property
    def read(self) -> Callable[[str], Path]:
        """Where a string leads."""
        return cache(self.automaton.read)

    @property
    def states(self) -> int:
        return self.automaton.size


def reader(page: Page, automaton: Automaton, place: int | None = None, behind: bool = False) -> Reader:
    """An automaton on a page; its mark, if it has one, stands before or behind the letters of a place."""
    marks: tuple[Mark, ...] = ()
    if place is not None and automaton.mark is not None:
        marks = (Mark(place, behind, automaton.mark),)
    return Reader(automaton, marks, cache(lambda first: _table(page, automaton, first)))


def _table(page: Page, automaton: Automaton, first: bool) -> Table:
    """What each token of a page does."""
    known, strings = page.pieces, page.strings(first)
    joined = np.zeros(len(page.outcomes), dtype=bool) if first else known.joined[page.outcomes]
    ends, torn = known.ends[page.outcomes], strings.torn[strings.of]
    empty = strings.lengths[strings.of] == 0
    to, add = _walk(automaton, strings)  # (S, D) each
    effect = _equal(np.concatenate([to, add]) if add.any() else to)  # (D,)
    effect[strings.torn] = effect.max(initial=0) + 1 + np.arange(strings.torn.sum())  # each of its own
    traits = (((torn * (effect.max(initial=0) + 1) + effect[strings.of]) * 2 + joined) * 2 + ends) * 2 + empty
    _, example, of = np.unique(traits, return_index=True, return_inverse=True)  # the plain ones come first
    classes = np.full(page.width, -1)
    classes[page.outcomes] = of
    string, wild = strings.of[example], torn[example]
    low, high = torn_ways(automaton, [strings.distinct[index] for index in string[wild]])
    return Table(
        classes,
        joined[example],
        ends[example],
        np.array([strings.distinct[index].endswith(UNFINISHED) for index in string]),
        empty[example],
        to[:, string[~wild]],
        add[:, string[~wild]],
        low,
        high,
    )


def _walk(automaton: Automaton, strings: Strings) -> tuple[Ints, Ints]:
    """(S, D) where each string leads from each state, and what it adds."""
    codes = automaton.classes[strings.letters]  # (D, longest)
    state = np.repeat(np.arange(automaton.size)[:, None], len(codes), 1)
    count = np.zeros_like(state)
    for at in range(codes.shape[1]):
        active = int((strings.lengths > at).sum())  # the longest stand in front
        letter = codes[:active, at]
        count[:, :active] += automaton.add[state[:, :active], letter]
        state[:, :active] = automaton.to[state[:, :active], letter]
    return state, count


def _equal(columns: Ints) -> Ints:
    """(D,) a number for each column, the same for equal ones."""
    rows = np.ascontiguousarray(columns.T.astype(np.int32))
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


def torn_ways(automaton: Automaton, texts: Sequence[str]) -> tuple[Floats, Floats]:
    """(2, R, S, S) the least and the most that torn texts may add; for the second, a letter may be begun before."""
    known = {(text, after): _ways(automaton, text, after) for text in {*texts} for after in (False, True)}
    shape = (2, len(texts), automaton.size, automaton.size)
    found = [[known[text, after] for text in texts] for after in (False, True)]
    low, high = (np.array([[way[side] for way in row] for row in found]).reshape(shape) for side in (0, 1))
    return low, high


def _ways(automaton: Automaton, text: str, after_torn: bool) -> tuple[Floats, Floats]:
    """(S, S) from each state to each other.

    A letter counts for the first of its bytes. So an unfinished one is some letter of several bytes, or stays as it is;
    and right after another it may be nothing, if it belongs to that.
    """
    rows = [Bounds.at(start) for start in np.eye(automaton.size, dtype=bool)]
    for letter in text:
        unfinished = letter == UNFINISHED
        kinds = automaton.wide if unfinished else np.array(automaton.codes(letter))
        path = automaton.to[:, kinds], automaton.add[:, kinds]
        stepped = [row.through(path) for row in rows]
        may_vanish = unfinished and after_torn
        rows = [row.either(step) for row, step in zip(rows, stepped, strict=True)] if may_vanish else stepped
        after_torn = unfinished
    return np.array([row.low for row in rows]), np.array([row.high for row in rows])
