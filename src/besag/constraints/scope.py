"""Where a constraint looks: at the token of a place, at a word, or at the whole text.

| given | it looks at |
|---|---|
| nothing | the whole text |
| `place=i` | the letters of the token at free place i ("ing" for "##ing"), whatever stands around it |
| `place=i, whole=True` | the whole word that these letters end in |
| `number=k` | the word of that number in the text: 0 is the first, −1 the last |

Only the second looks at one place on its own. The others look as soon as what they look at is settled.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from besag.arrays import Bools
from besag.constraints.constraint import Constraint, Contradiction, Domains, filled_in, in_range, narrowed
from besag.constraints.page import Page, Writing, words
from besag.errors import BesagError


@dataclass(frozen=True, kw_only=True)
class Scoped(Constraint):
    place: int | None = None
    number: int | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        if self.place is not None and self.number is not None:
            raise BesagError(f"place={self.place} and number={self.number}: look at a place or at a word, not at both")
        if self.whole and self.place is None:
            raise BesagError("whole=True asks for the whole word at a place: say which place (place=…)")

    @abstractmethod
    def right(self, text: str) -> bool:
        """Is what it looks at as it should be?"""

    @property
    def where(self) -> str:
        if self.number is not None:
            return f"word number {self.number}"
        if self.place is not None:
            return f"the word at place {self.place}" if self.whole else f"place {self.place}"
        return "the text"

    def check(self, page: Page) -> None:
        if self.place is not None:
            in_range(self.place, page, self)

    def subject(self, writing: Writing) -> str | None:
        """What it looks at; None while that is not settled."""
        if self.number is not None:
            return writing.word(self.number)
        if self.place is None:
            return writing.text if writing.complete else None
        place = in_range(self.place, writing.page, self)
        return writing.word_at(place) if self.whole else writing.letters(place)

    def accepts(self, subject: str) -> bool:
        return self.right(subject) and (self.number is None or bool(subject))  # a word that is not there is not right

    def holds(self, writing: Writing) -> bool:
        subject = self.subject(writing)
        return subject is not None and self.accepts(subject)

    def allowed(self, page: Page) -> dict[int, Bools] | None:
        if self.place is None or self.whole:
            return None
        place = in_range(self.place, page, self)
        letters, keep = page.letters(place), np.zeros(page.width, dtype=bool)
        keep[page.outcomes] = [self.right(letters[token]) for token in page.outcomes.tolist()]
        return {place: keep}


def narrow(constraint: Scoped, page: Page) -> tuple[int, Bools] | None:
    """Where one token may be a whole word, the tokens that are none, or one that is right.

    A place has such a token if nothing can be joined to it from behind, as before a full stop at the end of a text.
    """
    place = constraint.place if constraint.whole else (-1 if constraint.number == -1 else None)
    place = None if place is None else place % page.size
    around = None if place is None else page.around(place)
    if place is None or around is None or (constraint.number is not None and words(page.tail[len(around[1]) :])):
        return None
    keep, letters = np.ones(page.width, dtype=bool), page.letters(place)
    joined = page.pieces.joined if not page.gaps[place].first else np.zeros_like(page.pieces.joined)
    for token in page.outcomes[~joined[page.outcomes] & ~page.pieces.torn[page.outcomes]].tolist():
        found = words(around[0] + letters[token] + around[1])
        if len(found) == 1 and re.search(r"\w", letters[token]):
            keep[token] = constraint.accepts(found[0])
    return place, keep


class Settled:
    """Looks as soon as there is something to look at."""

    def __init__(self, constraint: Scoped, page: Page) -> None:
        self.constraint, self.page = constraint, page
        self.narrow = narrow(constraint, page)

    def propagate(self, domains: Domains) -> Domains:
        if self.narrow is not None:
            place, keep = self.narrow
            domains = narrowed(domains, place, keep[domains[place]])
        subject = self.constraint.subject(Writing(self.page, filled_in(domains)))
        if subject is not None and not self.constraint.accepts(subject):
            raise Contradiction(None if self.constraint.place is None else self.constraint.place % self.page.size)
        return domains
