"""A page and all that is demanded of it: constraints that propagate in turn until none takes anything out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from besag.constraints.constraint import Constraint, Contradiction, Domains, Propagator
from besag.constraints.page import Page, Writing


class Dead(Exception):
    """The number of a constraint that cannot hold any more, and the place left without a token, if it is one."""

    def __init__(self, number: int, place: int | None) -> None:
        super().__init__(number, place)
        self.number, self.place = number, place


@dataclass(frozen=True, eq=False)
class Problem:
    page: Page
    constraints: Sequence[Constraint]
    propagators: Sequence[Propagator]

    def propagated(self, domains: Domains) -> Domains:
        """All constraints in turn, until none of them takes anything out."""
        while True:
            before = domains
            for number, propagator in enumerate(self.propagators):
                try:
                    domains = propagator.propagate(domains)
                except Contradiction as found:
                    raise Dead(number, found.place) from None
            if all(a is b for a, b in zip(before, domains, strict=True)):
                return domains

    def broken(self, tokens: tuple[int, ...]) -> int | None:
        """The number of the first constraint that does not hold for a text."""
        writing = Writing(self.page, tokens)
        return next((number for number, each in enumerate(self.constraints) if not each.holds(writing)), None)

    def only(self, *numbers: int) -> Problem:
        """Some of the constraints."""
        some = [self.constraints[number] for number in numbers], [self.propagators[number] for number in numbers]
        return Problem(self.page, *some)
