"""Regular expressions for a place, a word or the whole text. What is looked at must match as a whole.

Where the expression can be followed letter by letter (`regex.py`), tokens that cannot lead to a match are taken out
before the model is asked; otherwise it is checked as soon as what it looks at is settled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from besag.checks import checked
from besag.constraints.automaton import language
from besag.constraints.automaton_filter import AutomatonFilter
from besag.constraints.constraint import Filter, Propagator, in_range
from besag.constraints.page import Page
from besag.constraints.regex import Around, Choice, Here, Node, Row, Unsupported, parse
from besag.constraints.scope import Scoped, Settled
from besag.constraints.tables import reader
from besag.errors import BesagError

SIGNS, WITH_LETTER = r"[^\w\s]+", r"\S*\w\S*"


@checked
@dataclass(frozen=True)
class Pattern(Scoped):
    """What stands at a place, a word, or the whole text matches a regular expression of Python's `re`."""

    regex: str
    ignore_case: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            re.compile(self.regex)
        except (re.error, TypeError) as failure:
            raise BesagError(f"Pattern({self.regex!r}): this is no regular expression: {failure}") from None

    @property
    def letters(self) -> str:
        return self.regex

    @property
    def flags(self) -> re.RegexFlag:
        return re.IGNORECASE if self.ignore_case else re.NOFLAG

    def right(self, text: str) -> bool:
        return re.fullmatch(self.regex, text, self.flags) is not None

    def on(self, page: Page) -> Propagator:
        allowed = self.allowed(page)
        if allowed is not None:
            [(place, keep)] = allowed.items()
            return Filter(place, keep)
        try:
            return self._filter(page)
        except Unsupported:
            return Settled(self, page)

    def _filter(self, page: Page) -> AutomatonFilter:
        tree, flags = parse(self.regex)
        flags, letters = flags | self.flags, page.alphabet.and_those_of(self.regex)
        if self.number is not None:
            return AutomatonFilter(page, reader(page, language(numbered(tree, self.number), flags, letters)))
        if self.place is None:
            return AutomatonFilter(page, reader(page, language(tree, flags, letters)))
        around: Node = Row((_read(r"(?:[\s\S]*\s)?"), Around(with_signs(tree)), _read(r"(?:\s[\s\S]*)?")))
        if self.right(""):  # a token without letters is in no word
            anything = _read(r"[\s\S]*")
            around = Choice((around, Row((anything, Here(), anything))))
        found = language(around, flags, letters)
        return AutomatonFilter(page, reader(page, found, in_range(self.place, page, self), behind=True))

    def __str__(self) -> str:
        return f"{self.where} matches {self.regex!r}"


def numbered(word: Node, number: int) -> Node:
    """The texts whose word of that number matches."""
    if number >= 0:
        skipped = rf"(?:{WITH_LETTER}\s+(?:{SIGNS}\s+)*)"
        before, after = rf"\s*(?:{SIGNS}\s+)*{skipped}{{{number}}}", r"(?:\s[\s\S]*)?"
    else:
        skipped = rf"(?:\s+{WITH_LETTER}(?:\s+{SIGNS})*)"
        before, after = r"(?:[\s\S]*\s)?", rf"(?:\s+{SIGNS})*{skipped}{{{-number - 1}}}\s*"
    return Row((_read(before), with_signs(word), _read(after)))


def with_signs(word: Node) -> Node:
    """A word as it stands in a text: signs at its ends do not belong to it."""
    signs = _read(r"[^\w\s]*")
    return Row((signs, word, signs))


def _read(pattern: str) -> Node:
    return parse(pattern)[0]
