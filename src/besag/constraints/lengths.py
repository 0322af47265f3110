"""How long the text is, in characters or words, what is given in it counted too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from besag.checks import checked
from besag.constraints.automaton import counter
from besag.constraints.automaton_filter import AutomatonFilter
from besag.constraints.constraint import Constraint, Propagator
from besag.constraints.page import Page, Writing
from besag.constraints.tables import reader
from besag.errors import BesagError, nearest

UNITS = ("characters", "words")


@checked
@dataclass(frozen=True)
class Length(Constraint):
    """At least and at most so many characters or words."""

    least: int = 0
    most: int | None = None
    of: Literal["characters", "words"] = "characters"

    def __post_init__(self) -> None:
        if self.of not in UNITS:
            raise BesagError(f"Length(of={self.of!r}): count {' or '.join(UNITS)}.{nearest(str(self.of), UNITS)}")
        if self.least < 0 or (self.most is not None and self.most < self.least):
            raise BesagError(f"Length(least={self.least}, most={self.most}): no text is that long")

    def holds(self, writing: Writing) -> bool:
        count = len(writing.text if self.of == "characters" else writing.words)
        return self.least <= count and (self.most is None or count <= self.most)

    def on(self, page: Page) -> Propagator:
        return AutomatonFilter(page, reader(page, counter(self.of, self.least, self.most, page.alphabet)))

    def __str__(self) -> str:
        if self.least == self.most:
            return f"exactly {self.most} {self.of}"
        bounds = [f"at least {self.least}"] * bool(self.least) + [f"at most {self.most}"] * (self.most is not None)
        return f"{' and '.join(bounds) or 'any number of'} {self.of}"
