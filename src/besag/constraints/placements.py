"""Required words, tried early: a word that must stand somewhere is best set before the text around it.

A search that fills a text from one end would put a required word where the last room for it is. A placement is one way
to write it: neighbouring places, and a token for each. The search takes the placement that the model finds likeliest,
and sets its first place; one that is begun goes before all others. Placements choose what is tried first and close no
way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from besag.constraints.constraint import Constraint, Domains
from besag.constraints.page import Page, Writing

Placement: TypeAlias = tuple[tuple[int, int], ...]  # places that are open, each with a token


@dataclass(frozen=True, eq=False)
class Placements:
    page: Page
    ways: Sequence[tuple[Constraint, tuple[Placement, ...]]]  # of each constraint, on an empty page

    @classmethod
    def of(cls, page: Page, constraints: Sequence[Constraint]) -> Placements:
        ways = []
        for constraint in constraints:
            found = []
            for tokens in constraint.spellings(page):
                for start in range(page.size - len(tokens) + 1):
                    places = range(start, start + len(tokens))
                    if all(page.gaps[place].follows for place in places[1:]):
                        found.append(tuple(zip(places, tokens, strict=True)))
            ways.append((constraint, tuple(found)))
        return cls(page, ways)

    def open(self, tokens: tuple[int | None, ...], domains: Domains) -> list[Placement]:
        """What is left to set of the ways that are still open, for words that do not stand in the text yet."""
        writing, found = Writing(self.page, tokens), list[tuple[bool, Placement]]()
        for constraint, ways in self.ways:
            if not ways or constraint.holds(writing):
                continue
            for way in ways:
                if all(tokens[place] in (None, token) for place, token in way):
                    left = tuple((place, token) for place, token in way if tokens[place] is None)
                    if left and all(token in domains[place] for place, token in left):
                        found.append((len(left) < len(way), left))
        begun = [placement for started, placement in found if started]
        return begun or [placement for _, placement in found]
