"""An automaton on a page: which tokens can stand where, given what may stand everywhere else.

The text is read from left to right: what stands between places, then what a token writes, and so on. Forward, f_i(s) is
the least and the most that may have been counted when the automaton is in state s before place i; backward, b_i(s) the
least and the most that may still come until it accepts. A token that leads from s to t and adds a is kept at place i if

    for some s   least f_i(s) + a + least b_{i+1}(t) ≤ most    and    most f_i(s) + a + most b_{i+1}(t) ≥ least

Without a count this is exact: a token is kept if and only if some choice of tokens at the other places, each from its
domain, gives a right text. With a count it is the usual reasoning on bounds: nothing right is lost, something wrong may
stay. What a token writes may depend on its neighbours (see `pieces.py`): then all that might be written is followed.

A search propagates thousands of times, and most of a text is as it was the time before; so every step is remembered by
what went into it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar

import numpy as np

from besag.arrays import Bools, Ints
from besag.constraints.constraint import Contradiction, Domains, narrowed
from besag.constraints.page import Gap, Page
from besag.constraints.tables import Bounds, Reader, Table

T = TypeVar("T")

REMEMBERED = 20_000  # steps


class Before(NamedTuple):
    """What the token before a place may be."""

    ending: bool  # one that nothing is joined to
    going: bool  # one that something may be joined to
    torn: bool  # one whose last letter is not finished
    spaced: bool  # may the text end in white space behind it, or be empty?
    bare: bool  # may it not?

    @classmethod
    def given(cls, gap: Gap) -> Before:
        """Before a place that follows on given text, or on nothing."""
        return cls(gap.ended, not gap.ended, False, not gap.text, True)

    def after(self, table: Table, here: Bools, plain: tuple[str, ...]) -> Before:
        """Before the next place, if a token of these classes is written at this one."""
        ending, going = bool((here & table.ends).any()), bool((here & ~table.ends).any())
        nothing, letters = bool((here & table.empty).any()), bool((here & ~table.empty).any())
        torn = bool((here & table.torn).any()) or (self.torn and nothing)
        spaced = any(text[-1:].isspace() or (not text and self.spaced) for text in plain)
        bare = any(not text[-1:].isspace() and (bool(text) or self.bare) for text in plain)
        return Before(ending, going, torn, nothing and (spaced or self.torn), letters or bare or self.torn)


class _Step(NamedTuple):
    """A place on the way forward."""

    before: Before
    between: tuple[tuple[str, ...], tuple[str, ...]]  # what may be written before a token, and before a joined one
    start: tuple[Bounds, Bounds]  # before the letters of the one, and of the other
    end: Bounds  # behind them


class AutomatonFilter:
    """Keeps the tokens by which a right text can still be written."""

    def __init__(self, page: Page, reader: Reader) -> None:
        self.page, self.reader = page, reader
        self._known: dict[Hashable, object] = {}

    def propagate(self, domains: Domains) -> Domains:
        if len(self._known) > REMEMBERED:
            self._known.clear()
        page = self.page
        here = [self._classes(place, domains[place]) for place in range(page.size)]
        steps = self._forward(here)
        after = self._last
        self._refuse(steps, after)
        for place in reversed(range(page.size)):
            step, classes = steps[place], here[place]
            kept = self._kept(place, step, after, classes)
            if (kept != classes).any():
                domains = narrowed(domains, place, kept[self._table(place).of[domains[place]]])
            after = self._backward(place, step, after, classes)
        return domains

    def _table(self, place: int) -> Table:
        return self.reader.table(self.page.gaps[place].first)

    def _classes(self, place: int, tokens: Ints) -> Bools:
        """(K + R,) the classes that some tokens belong to; equal ones are one object."""

        def find() -> tuple[Ints, Bools]:
            found = np.zeros(len(self._table(place).joined), dtype=bool)
            found[self._table(place).of[tokens]] = True
            return tokens, self._same(found)

        return self._once((id(tokens), self.page.gaps[place].first), find)[1]  # it holds the tokens, and so their id

    @property
    def _last(self) -> Bounds:
        """Behind the last place."""
        reader, tail = self.reader, self.page.tail
        return self._once("last", lambda: self._one(Bounds.at(reader.automaton.accept).before(reader.read(tail))))

    def _forward(self, here: list[Bools]) -> list[_Step]:
        first = np.arange(self.reader.states) == 0
        now, before, steps = self._one(Bounds.at(first)), Before.given(self.page.gaps[0]), list[_Step]()
        for place, gap in enumerate(self.page.gaps):
            if not gap.follows:
                before = Before.given(gap)
            key = "forward", place, id(now), id(here[place]), before
            step = self._once(key, lambda: self._step(place, gap, now, here[place], before))  # noqa: B023
            steps.append(step)
            now, before = step.end, before.after(self._table(place), here[place], step.between[0])
        return steps

    def _step(self, place: int, gap: Gap, now: Bounds, here: Bools, before: Before) -> _Step:
        table = self._table(place)
        between = _between(gap, before, self.page.pieces.spaces)
        plain, joined = (self._marked(place, False, self._after(now, texts), True) for texts in between)
        end = table.forward(plain, here & ~table.joined, before.torn)
        end = end.either(table.forward(joined, here & table.joined, before.torn))
        end = self._marked(place, True, end, True)
        return _Step(before, between, (self._one(plain), self._one(joined)), self._one(end))

    def _kept(self, place: int, step: _Step, after: Bounds, here: Bools) -> Bools:
        """(K + R,) the classes by which a right text can be written."""

        def find() -> Bools:
            table, kept, automaton = self._table(place), np.zeros_like(here), self.reader.automaton
            end = self._marked(place, True, after)
            for which, start in zip((~table.joined, table.joined), step.start, strict=True):
                kept |= table.lead(start, end, which & here, step.before.torn, automaton.least, automaton.most)
            return kept

        return self._once(("kept", place, step.before.torn, *map(id, step.start), id(after), id(here)), find)

    def _backward(self, place: int, step: _Step, after: Bounds, here: Bools) -> Bounds:
        """Before what stands before a place."""

        def find() -> Bounds:
            table, end = self._table(place), self._marked(place, True, after)
            before = Bounds.at(np.zeros(self.reader.states, dtype=bool))
            for which, texts in zip((~table.joined, table.joined), step.between, strict=True):
                start = self._marked(place, False, table.backward(end, which & here, step.before.torn))
                for text in texts:
                    before = before.either(start.before(self.reader.read(text)))
            return self._one(before)

        return self._once(("backward", place, id(after), id(here), step.before, step.between), find)

    def _after(self, now: Bounds, texts: tuple[str, ...]) -> Bounds:
        ways = [now.through(self.reader.read(text)) for text in texts]
        found = ways[0]
        for way in ways[1:]:
            found = found.either(way)
        return found

    def _marked(self, place: int, behind: bool, bounds: Bounds, forward: bool = False) -> Bounds:
        """Over the marks before or behind the letters of a place."""
        for mark in self.reader.marks:
            if (mark.place, mark.behind) == (place, behind):
                path = mark.to, np.zeros_like(mark.to)
                bounds = bounds.through(path) if forward else bounds.before(path)
        return bounds

    def _refuse(self, steps: list[_Step], after: Bounds) -> None:
        """Is there any right text? If not, say at which place all hope is lost, if it is at one."""
        automaton, end = self.reader.automaton, steps[-1].end
        low, high = end.low + after.low, end.high + after.high
        if ((low < np.inf) & (low <= automaton.most) & (high >= automaton.least)).any():
            return
        for place, step in enumerate(steps if automaton.hopeful[0] else []):
            if not ((step.end.low < np.inf) & automaton.hopeful).any():
                raise Contradiction(place)
        raise Contradiction(None)

    def _once(self, key: Hashable, find: Callable[[], T]) -> T:
        """What was found for this key, or is found now."""
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]  # type: ignore[return-value]

    def _same(self, classes: Bools) -> Bools:
        return self._once(("classes", classes.tobytes()), lambda: classes)

    def _one(self, bounds: Bounds) -> Bounds:
        """Equal bounds are one object, so that its id tells them apart for as long as it is remembered."""
        return self._once(("bounds", bounds.low.tobytes(), bounds.high.tobytes()), lambda: bounds)


def _between(gap: Gap, before: Before, spaces: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What may be written between a place and what stands before it: for most tokens, and for those that join it."""
    if before.torn:  # written together with the token before: what stands between is left out, its own space is not
        every = tuple(dict.fromkeys([gap.text, gap.text.rstrip(), "", *spaces]))
        return every, every
    plain = [gap.text] * (before.bare or not gap.masks) + [""] * (before.spaced and gap.masks)
    joined = [gap.text.rstrip()] * before.going + plain * before.ending
    return tuple(dict.fromkeys(plain)), tuple(dict.fromkeys(joined))
