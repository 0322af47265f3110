"""What a constraint is: it says of a whole text whether it holds, and on the way which tokens can no longer stand.

    holds(writing)        exactly, once every place is filled
    on(page).propagate    takes tokens out of the domains of places: only such as stand in no solution

Domains are one array of token ids for each place: those that may still stand there, one alone where it is filled. To
take out a token that stands in a solution would be an error; to leave one in that stands in none is only slow. A domain
that is left with nothing is a `Contradiction`.

A constraint is a frozen dataclass with the options of its user. What it has to know about a page, it works out once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from besag.arrays import Bools, Ints
from besag.constraints.page import Page, Writing
from besag.errors import BesagError

Domains: TypeAlias = tuple[Ints, ...]  # (n,) the tokens that may stand at each place, in order


class Contradiction(Exception):
    """Nothing can stand at a place, or nowhere at all (place None)."""

    def __init__(self, place: int | None) -> None:
        super().__init__(place)
        self.place = place


class Propagator(Protocol):
    """A constraint on one page."""

    def propagate(self, domains: Domains) -> Domains:
        """Domains without tokens that stand in no solution; those left as they are, are the same objects."""


class Constraint(ABC):
    @abstractmethod
    def holds(self, writing: Writing) -> bool:
        """Does it hold for a text whose places are all filled?"""

    @abstractmethod
    def on(self, page: Page) -> Propagator:
        """How it prunes the domains of this page's places."""

    @abstractmethod
    def __str__(self) -> str:
        """What it demands, as a message says it."""

    def check(self, page: Page) -> None:
        """Refuse what can be no constraint on this page, such as a place that it does not have."""
        return

    @property
    def letters(self) -> str:
        """The letters that it names."""
        return ""

    def reason(self, page: Page) -> str:
        """Why nothing on the page can satisfy it, if nothing can."""
        return "no tokens of this vocabulary at the free places make it so"

    def spellings(self, page: Page) -> list[tuple[int, ...]]:
        """Tokens that, one after the other at neighbouring places, would satisfy it: what a search may try first."""
        return []

    def allowed(self, page: Page) -> dict[int, Bools] | None:
        """(V,) by place: the tokens that it leaves to each place read on its own; None if it ties places together."""
        return None


class Filter:
    """Keeps some tokens at one place."""

    def __init__(self, place: int, keep: Bools) -> None:
        self.place, self.keep = place, keep

    def propagate(self, domains: Domains) -> Domains:
        return narrowed(domains, self.place, self.keep[domains[self.place]])


def narrowed(domains: Domains, place: int, keep: Bools) -> Domains:
    """Domains where one place keeps some of its tokens."""
    if keep.all():
        return domains
    if not keep.any():
        raise Contradiction(place)
    return (*domains[:place], domains[place][keep], *domains[place + 1 :])


def filled_in(domains: Domains) -> tuple[int | None, ...]:
    """The tokens of the places that have one left."""
    return tuple(int(tokens[0]) if len(tokens) == 1 else None for tokens in domains)


def refuse_strangers(constraints: Sequence[object]) -> None:
    if isinstance(constraints, Constraint | str) or not isinstance(constraints, Sequence):
        raise BesagError(f"constraints={constraints!r}: give a list, such as [Required('sea'), Length(most=40)]")
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise BesagError(
                f"{constraint!r} is no constraint: there are Required, Forbidden, Word, Pattern, Length, Predicate"
            )


def in_range(place: int, page: Page, constraint: object) -> int:
    """The number of a place, counted from 0; negative ones from the end."""
    if not -page.size <= place < page.size:
        places = "1 free place, number 0" if page.size == 1 else f"{page.size} free places, 0 to {page.size - 1}"
        raise BesagError(f"{constraint}: there is no place {place}, the text has {places}")
    return place % page.size


def everything(page: Page) -> Domains:
    """Any token of text at any place."""
    return (np.asarray(page.outcomes),) * page.size
