"""Constraints on small exact laws: all texts, plain definitions of what each constraint demands, random ones to try.

The definitions here look at strings alone and share nothing with the code that they check. Import it as
`tests.constraints.small`.
"""

from __future__ import annotations

import re
from itertools import product

import numpy as np
from hypothesis import strategies as st

from besag.conditionals.table import Table
from besag.constraints import Forbidden, Length, Pattern, Predicate, Required, Word

SYMBOLS = ["a", "b", "ab", "b.", "-"]  # words of one and two letters, one with a sign, and a sign that is no word
REGEXES = [".*", "[ab]+", "a", "b|ab", "(?:a|b) .*", r".*\.", "[^-]*", "(a|ab)( b)*", r"\w+", "", r"(?!a).*", r"a\b.*"]


def law(places: int, symbols: list[str] = SYMBOLS, seed: int = 0) -> Table:
    """A random joint in which every sequence has some probability."""
    weights = np.random.default_rng(seed).gamma(0.7, size=(len(symbols),) * places) + 0.01
    return Table(weights, symbols)


def texts(template: str, symbols: list[str] = SYMBOLS) -> dict[tuple[int, ...], str]:
    """Every filling of the masks of a template of symbols, and its text."""
    parts = template.split(" ")
    masks = [index for index, part in enumerate(parts) if part == "[MASK]"]
    found = {}
    for ids in product(range(len(symbols)), repeat=len(masks)):
        for index, id in zip(masks, ids, strict=True):
            parts[index] = symbols[id]
        found[ids] = " ".join(parts)
    return found


def stands(word: str, text: str) -> bool:
    """Is the word in the text with no letter beside it?"""
    for at in range(len(text)):
        if text.startswith(word, at):
            before, after = text[at - 1 : at] if at else "", text[at + len(word) : at + len(word) + 1]
            if not (before.isalnum() and word[0].isalnum()) and not (after.isalnum() and word[-1].isalnum()):
                return True
    return False


def words_of(text: str) -> list[str]:
    bare = [part.strip(".-") for part in text.split()]
    return [word for word in bare if word]


def demanded(constraint, template: str, ids: tuple[int, ...], text: str, symbols: list[str] = SYMBOLS) -> bool:
    """Does the constraint hold, by its definition?"""
    masks = [index for index, part in enumerate(template.split(" ")) if part == "[MASK]"]
    parts = text.split(" ")
    if isinstance(constraint, Required):
        return stands(constraint.word, text)
    if isinstance(constraint, Forbidden):
        return not stands(constraint.word, text)
    if isinstance(constraint, Length):
        count = len(text) if constraint.of == "characters" else len(words_of(text))
        return constraint.least <= count <= (constraint.most if constraint.most is not None else count)
    if isinstance(constraint, Word) and constraint.place is not None:
        rest = " ".join(parts[masks[constraint.place] :])
        return rest.startswith(constraint.word) and not rest[len(constraint.word) :][:1].isalnum()
    if constraint.number is not None:
        words = words_of(text)
        if not -len(words) <= constraint.number < len(words):
            return False
        subject = words[constraint.number]
    elif constraint.place is not None:
        subject = symbols[ids[constraint.place]]
        if constraint.whole:
            subject = subject.strip(".-")
    else:
        subject = text
    if isinstance(constraint, Word):
        return subject == constraint.word
    return bool(
        re.fullmatch(constraint.regex, subject) if isinstance(constraint, Pattern) else constraint.test(subject)
    )


def is_short(text: str) -> bool:
    return len(text) < 2


def has_two_bs(text: str) -> bool:
    return text.count("b") == 2


def constraints(places: int) -> st.SearchStrategy:
    """Any of them, for a template of so many masks."""
    place, number = st.integers(0, places - 1), st.sampled_from([0, 1, 2, -1, -2])
    word = st.sampled_from(["a", "b", "ab", "a b", "b ab", "b.", "-"])
    single = st.sampled_from(["a", "b", "ab"])
    regex, test = st.sampled_from(REGEXES), st.sampled_from([is_short, has_two_bs])
    least = st.integers(0, 8)
    where = st.one_of(
        st.just({}),
        st.builds(lambda i: {"place": i}, place),
        st.builds(lambda i: {"place": i, "whole": True}, place),
        st.builds(lambda i: {"number": i}, number),
    )
    return st.one_of(
        st.builds(Required, word),
        st.builds(Forbidden, word),
        st.builds(lambda w, i: Word(w, place=i), word, place),
        st.builds(lambda w, i: Word(w, number=i), single, number),
        st.builds(lambda r, kind: Pattern(r, **kind), regex, where),
        st.builds(lambda t, kind: Predicate(t, **kind), test, where),
        st.builds(
            lambda low, more, of: Length(low, None if more is None else low + more, of),
            least,
            st.none() | st.integers(0, 3),
            st.sampled_from(["characters", "words"]),
        ),
    )
