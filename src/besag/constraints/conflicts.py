"""Contradictions that show before the model is asked, and whose they are: one constraint's, two's, or all's.

One: it leaves nothing to a place, whatever the others say. Two: each can hold, and not both: a word is required and
forbidden, or too long for the text. There two automata read the page side by side; a state of both is a pair of states,
and if no pair that both accept can be reached by tokens, no text satisfies the two. (Of two that count, such as a
length in characters and one in words, only the pruned domains are compared.) All: none of this, and yet, once each has
taken out what it cannot have, nothing is left.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np

from besag.constraints.automaton_filter import AutomatonFilter
from besag.constraints.constraint import Contradiction, Domains, everything
from besag.constraints.page import Page
from besag.constraints.problem import Dead, Problem
from besag.constraints.tables import Mark, Reader, Table, torn_ways

MOST_PAIRS = 600  # states of two automata together
MOST_CELLS = 2**22  # of what torn tokens do to them


def begin(problem: Problem) -> Domains | str:
    """The domains before the model is asked, or why there can be no solution."""
    page, known = problem.page, problem.constraints
    for constraint, propagator in zip(known, problem.propagators, strict=True):
        try:
            propagator.propagate(everything(page))
        except Contradiction as found:
            return f"no text satisfies: {constraint}{_at(found.place)}; {constraint.reason(page)}"
    for first, second in combinations(range(len(known)), 2):
        try:
            _both(problem.only(first, second))
        except Dead as dead:
            return f"no text satisfies both: {known[first]}, and {known[second]}{_at(dead.place)}"
    try:
        return problem.propagated(everything(page))
    except Dead as dead:
        return f"no text satisfies all of them: {known[dead.number]}{_at(dead.place)}, by what the others leave to it"


def _at(place: int | None) -> str:
    return "" if place is None else f": nothing is left for place {place}"


def _both(problem: Problem) -> None:
    """Refuse two constraints that cannot both hold."""
    domains = problem.propagated(everything(problem.page))
    filters = [each for each in problem.propagators if isinstance(each, AutomatonFilter)]
    if len(filters) == 2 and affordable(filters[0].reader, filters[1].reader):
        both = AutomatonFilter(problem.page, together(problem.page, filters[0].reader, filters[1].reader))
        try:
            both.propagate(domains)
        except Contradiction as found:
            raise Dead(0, found.place) from None


def affordable(one: Reader, other: Reader) -> bool:
    left, right = one.table(False), other.table(False)
    pairs = one.states * other.states
    few = pairs <= MOST_PAIRS and 2 * len(left.low[0]) * pairs**2 <= MOST_CELLS
    alike = one.automaton.alphabet is other.automaton.alphabet
    return few and alike and not (left.add.any() and right.add.any())


def together(page: Page, one: Reader, other: Reader) -> Reader:
    """Both read the tokens of a page."""
    size = other.states
    first, second = np.divmod(np.arange(one.states * size), size)  # (S · T,) of each pair of states
    marks = [
        *(Mark(mark.place, mark.behind, mark.to[first] * size + second) for mark in one.marks),
        *(Mark(mark.place, mark.behind, first * size + mark.to[second]) for mark in other.marks),
    ]
    both = one.automaton.together(other.automaton)

    def table(start: bool) -> Table:
        left, right = one.table(start), other.table(start)
        pairs = np.stack([left.of[page.outcomes], right.of[page.outcomes]])
        torn = pairs[0] >= left.to.shape[1]  # torn for the one, torn for the other
        code = (torn * len(left.joined) + pairs[0]) * len(right.joined) + pairs[1]
        _, example, kind = np.unique(code, return_index=True, return_inverse=True)  # the plain ones come first
        of = np.full(page.width, -1)
        of[page.outcomes] = kind
        a, b = pairs[:, example]
        plain, strings = ~torn[example], page.strings(start)
        low, high = torn_ways(both, [strings.distinct[strings.of[index]] for index in example[~plain]])
        return Table(
            of,
            left.joined[a],
            left.ends[a],
            left.torn[a],
            left.empty[a],
            left.to[:, a[plain]][first] * size + right.to[:, b[plain]][second],
            left.add[:, a[plain]][first] + right.add[:, b[plain]][second],
            low,
            high,
        )

    return Reader(both, tuple(marks), cache(table))
