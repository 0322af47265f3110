"""Words that must stand in the text, must not, or must stand at one place of it.

A word stands in a text where it is written whole: "sea" is not in "season". It is sought in the text as it is written,
so it does not matter which tokens, and how many of them, spell it. White space in a phrase stands for any white space.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from besag.arrays import Bools
from besag.checks import checked
from besag.constraints.automaton import language
from besag.constraints.automaton_filter import AutomatonFilter
from besag.constraints.constraint import Constraint, Propagator, in_range
from besag.constraints.page import Page, Writing, words
from besag.constraints.patterns import numbered
from besag.constraints.regex import Here, Row, parse
from besag.constraints.tables import reader
from besag.errors import BesagError
from besag.places.reading import MASK

BEFORE, AFTER = r"(?:[\s\S]*\W)?", r"(?:\W[\s\S]*)?"


@dataclass(frozen=True)
class _Named(Constraint):
    word: str
    ignore_case: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.word, str) or not self.word.strip() or MASK in self.word:
            raise BesagError(f"{type(self).__name__}({self.word!r}): give a word, or several with spaces between")

    @property
    def letters(self) -> str:
        return self.word

    @cached_property
    def pattern(self) -> str:
        """The word itself."""
        return r"\s+".join(re.escape(part) for part in self.word.split())

    @property
    def flags(self) -> re.RegexFlag:
        return re.IGNORECASE if self.ignore_case else re.NOFLAG

    @cached_property
    def ends(self) -> tuple[bool, bool]:
        """Does the word begin and end with a letter or digit, so that none may stand before and after it?"""
        whole = self.word.strip()
        return bool(re.match(r"\w", whole)), bool(re.search(r"\w$", whole))

    def within(self, text: str) -> bool:
        """Does the word stand in a text?"""
        before, after = r"(?<!\w)" * self.ends[0], r"(?!\w)" * self.ends[1]
        return re.search(before + self.pattern + after, text, self.flags) is not None

    def is_word(self, text: str) -> bool:
        return re.fullmatch(self.pattern, text, self.flags) is not None

    @cached_property
    def around(self) -> tuple[str, str]:
        """What may stand before the word, and after it."""
        return BEFORE if self.ends[0] else r"[\s\S]*", AFTER if self.ends[1] else r"[\s\S]*"

    def filter(self, page: Page, absent: bool = False) -> AutomatonFilter:
        """The texts in which the word stands, or does not."""
        before, after = self.around
        found = language(parse(before + self.pattern + after)[0], self.flags, page.alphabet.and_those_of(self.word))
        return AutomatonFilter(page, reader(page, found.complement() if absent else found))

    def as_tokens(self, page: Page) -> list[tuple[int, ...]]:
        """How the tokenizer spells the word: after another one, and at the beginning of a text."""
        mask = page.vocabulary.mask_token
        found = []
        for encoded in page.vocabulary.encode([f"{mask} {self.word}", self.word]) if self._readable(page) else []:
            ids = encoded.ids[~encoded.special & (encoded.ids != page.mask_id)]
            if len(ids) and np.isin(ids, page.outcomes).all():
                found.append(tuple(ids.tolist()))
        return list(dict.fromkeys(found))

    def reason(self, page: Page) -> str:
        spelt = [tokens for tokens in self.as_tokens(page) if len(tokens) > 1]
        if not spelt:
            return super().reason(page)
        names = " ".join(page.vocabulary.token(token) for token in spelt[0])
        return f"the tokenizer spells it with {len(spelt[0])} tokens ({names}), for which there is no room"

    def _readable(self, page: Page) -> bool:
        """Some vocabularies have no token for what they do not know, and refuse it."""
        try:
            page.vocabulary.encode([self.word])
        except BesagError:
            return False
        return True


@checked
@dataclass(frozen=True)
class Required(_Named):
    """The word stands somewhere in the text."""

    def holds(self, writing: Writing) -> bool:
        return self.within(writing.text)

    def on(self, page: Page) -> Propagator:
        return self.filter(page)

    def spellings(self, page: Page) -> list[tuple[int, ...]]:
        return self.as_tokens(page)

    def __str__(self) -> str:
        return f"the word {self.word!r} is required"


@checked
@dataclass(frozen=True)
class Forbidden(_Named):
    """The word stands nowhere in the text."""

    def holds(self, writing: Writing) -> bool:
        return not self.within(writing.text)

    def on(self, page: Page) -> Propagator:
        return self.filter(page, absent=True)

    def allowed(self, page: Page) -> dict[int, Bools] | None:
        """Token by token: no token that writes the word alone. A word that takes several tokens ties places."""
        keep = [np.array([not self.within(text) for text in page.letters(place)]) for place in range(page.size)]
        return None if all(mask.all() for mask in keep) else dict(enumerate(keep))

    def __str__(self) -> str:
        return f"the word {self.word!r} is forbidden"


@checked
@dataclass(frozen=True)
class Word(_Named):
    """The word begins at a free place, or is the word of that number in the text. Give one of the two."""

    place: int | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.place is None) == (self.number is None):
            raise BesagError(
                f"Word({self.word!r}): say which place it begins at (place=0 is the first free one), or which word of "
                "the text it is (number=0 is the first, −1 the last)"
            )
        if self.number is not None and words(self.word) != [self.word]:
            raise BesagError(f"Word({self.word!r}, number={self.number}): words of a text are counted one by one")

    def check(self, page: Page) -> None:
        if self.place is not None:
            in_range(self.place, page, self)

    def holds(self, writing: Writing) -> bool:
        if self.number is not None:
            return self.is_word(writing.word(self.number) or "")
        assert self.place is not None
        start, _ = writing.span(in_range(self.place, writing.page, self))
        text = writing.text
        found = re.compile(self.pattern, self.flags).match(text, start)
        if not found or (self.ends[0] and start and re.match(r"\w", text[start - 1])):
            return False
        return not (self.ends[1] and re.match(r"\w", text[found.end() : found.end() + 1]))

    def on(self, page: Page) -> Propagator:
        letters = page.alphabet.and_those_of(self.word)
        if self.number is not None:
            tree = numbered(parse(self.pattern)[0], self.number)
            return AutomatonFilter(page, reader(page, language(tree, self.flags, letters)))
        assert self.place is not None
        before, after = (parse(part)[0] for part in self.around)
        found = language(Row((before, Here(), parse(self.pattern)[0], after)), self.flags, letters)
        return AutomatonFilter(page, reader(page, found, in_range(self.place, page, self)))

    def allowed(self, page: Page) -> dict[int, Bools] | None:
        if self.place is None:
            return None
        place = in_range(self.place, page, self)
        keep = np.array([self.is_word(text) for text in page.letters(place)])
        return {place: keep} if keep[page.outcomes].any() else None

    def __str__(self) -> str:
        where = f"begins at place {self.place}" if self.place is not None else f"is word number {self.number}"
        return f"the word {self.word!r} {where}"
