"""Any test that somebody writes: a function of a text, of a word, or of the letters of a token, that says yes or no.

    Predicate(lambda word: word.endswith("ight"), number=-1, name="rhymes with night")

The function is called when what it looks at is settled, so a test of a whole text is called at the end alone. Where it
is known earlier that a text can no longer become right, `viable` says so: it is shown the text with "[MASK]" at open
places, and where it answers no, the search turns back. It must say no only if every text to come would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from besag.checks import checked
from besag.constraints.constraint import Contradiction, Domains, Filter, Propagator, filled_in
from besag.constraints.page import Page, Writing
from besag.constraints.scope import Scoped, Settled
from besag.errors import BesagError
from besag.places.reading import MASK


@checked
@dataclass(frozen=True)
class Predicate(Scoped):
    """What stands at a place, a word, or the whole text passes a test."""

    test: Callable[[str], bool]
    viable: Callable[[str], bool] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in (self.test, self.viable):
            if what is not None and not callable(what):
                raise BesagError(f"Predicate({what!r}): give a function of a text that says True or False")

    def right(self, text: str) -> bool:
        return bool(self.test(text))

    def on(self, page: Page) -> Propagator:
        allowed = self.allowed(page)
        if allowed is not None and self.viable is None:
            [(place, keep)] = allowed.items()
            return Filter(place, keep)
        return _Viable(self, page) if self.viable is not None else Settled(self, page)

    def __str__(self) -> str:
        return f"{self.where} passes {self.name or getattr(self.test, '__name__', 'a test')!r}"


class _Viable(Settled):
    def propagate(self, domains: Domains) -> Domains:
        writing = Writing(self.page, filled_in(domains))
        assert isinstance(self.constraint, Predicate)
        assert self.constraint.viable is not None
        text = writing.text.replace(self.page.vocabulary.mask_token or MASK, MASK)
        if not self.constraint.viable(text):
            raise Contradiction(None)
        return super().propagate(domains)
