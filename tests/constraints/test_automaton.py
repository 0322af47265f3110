"""Regular expressions read as automata accept what `re` matches; counts are counts."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.constraints.alphabet import Alphabet
from besag.constraints.automaton import MARK, counter, language
from besag.constraints.page import words
from besag.constraints.regex import Around, Here, Row, Unsupported, parse

LETTERS = Alphabet.of(["abAB12-. \n_é]^{}"], torn=False)
TEXT = st.text("abA1-. \né]^{}", max_size=6)

atoms = st.sampled_from(
    ["a", "b", ".", r"\w", r"\W", r"\s", r"\d", "[ab]", "[^a-b]", "[]a]", r"[\w-]", r"\.", r"\n", r"\x61", "é", "-"]
    + ["{", "]"]
)  # fmt: skip
expressions = st.recursive(
    atoms,
    lambda part: st.one_of(
        st.builds("{}{}".format, part, part),
        st.builds("(?:{}|{})".format, part, part),
        st.builds("({})".format, part),
        st.builds(
            "(?:{}){}".format,
            part,
            st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{,2}", "{2,}", "{0}", "{,}"]),
        ),
    ),
    max_leaves=5,
)


def automaton(pattern):
    tree, flags = parse(pattern)
    return language(tree, flags, LETTERS)


@given(expressions, st.lists(TEXT, max_size=8), st.sampled_from(["", "(?i)", "(?s)"]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_it_accepts_what_matches(expression, texts, flags, anchored):
    pattern = flags + (f"^(?:{expression})$" if anchored and not flags else expression)
    found = automaton(pattern)
    for text in [*texts, "", "a", "ab", "aa", "b-", "é"]:
        assert found.accepts(text) == bool(re.fullmatch(pattern, text)), (pattern, text)
        assert found.complement().accepts(text) != found.accepts(text)


@pytest.mark.parametrize(
    "pattern", [r"\bword", "(?=a)b", "(?<!a)b", r"(a)\1", "a(?i:b)", "(?x)a", "a^b", "a$b", "a++", "(?>a)", r"\Aa"]
)  # fmt: skip
def test_what_is_not_read_says_so(pattern):
    with pytest.raises(Unsupported):
        automaton(pattern)


def test_what_would_be_too_large_says_so():
    with pytest.raises(Unsupported, match="more than 4000 parts"):
        automaton("(?:ab){5000}")
    with pytest.raises(Unsupported, match="states"):
        automaton("[ab]*a[ab]{14}")  # every subset of fourteen places is a state


def test_states_that_cannot_be_told_apart_are_one():
    assert automaton("(?:a|b)*").size == 2  # all is well, or nothing will be
    assert automaton("a|a|(?:a)").size == automaton("a").size == 3


def marked(automaton, before, after):
    """Is the text accepted with the mark between these two?"""
    state, _ = automaton.read(before)
    state = automaton.mark[state[0]]
    return bool(automaton.accept[automaton.read(after)[0][state]])


def test_the_mark_stands_where_it_is_demanded():
    here = language(Row((parse("a*")[0], Here(), parse("b")[0])), re.NOFLAG, LETTERS)
    assert marked(here, "aa", "b")
    assert marked(here, "", "b")
    assert not marked(here, "a", "ab")
    assert not here.accepts("aab")  # without the mark
    around = language(Row((parse("-")[0], Around(parse("ab|b+")[0]), parse("-")[0])), re.NOFLAG, LETTERS)
    for cut in range(5):
        text = "-bb-"
        assert marked(around, text[:cut], text[cut:]) == (1 <= cut <= 3)
    assert MARK == -1


@given(st.text("ab-. \n_é1", max_size=12))
@settings(max_examples=100, deadline=None)
def test_counts_are_counts(text):
    for of, count in (("characters", len(text)), ("words", len(words(text)))):
        for least, most in [(0, None), (count, count), (count + 1, None), (0, max(count - 1, 0))]:
            found = counter(of, least, most, LETTERS)
            assert found.accepts(text) == (least <= count and (most is None or count <= most))


def test_what_a_word_is():
    assert words('  "Don\'t!" she - said.') == ["Don't", "she", "said"]
    assert words("...") == []
    assert words("one-two, 3") == ["one-two", "3"]


def test_classes_of_many_patterns_stay_apart():
    letters = "".join(chr(code) for code in range(0x4E00, 0x4E00 + 60))
    tree, flags = parse("|".join(letters))
    found = language(tree, flags, Alphabet(letters))
    assert len(set(found.classes.tolist())) == 60
    assert all(found.accepts(letter) for letter in letters)
    assert not found.accepts(letters[:2])
