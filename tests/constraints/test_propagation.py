"""Propagation never takes out a solution, whatever the tokenizer; what can be followed letter by letter is exact."""

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.constraints.small import SYMBOLS, constraints, demanded, law, texts
from tests.tokenizers import FAMILIES, build

from besag.constraints import Forbidden, Length, Pattern, Predicate, Required, Word
from besag.constraints.automaton_filter import AutomatonFilter
from besag.constraints.conflicts import affordable, begin, together
from besag.constraints.constraint import Contradiction, everything
from besag.constraints.page import Page, Writing, words
from besag.constraints.problem import Dead, Problem
from besag.places.filling import UNFINISHED, filled
from besag.places.places import find
from besag.samplers.sheet import Sheet, template
from besag.vocabulary import Vocabulary

TEMPLATES = [
    "[MASK] [MASK] [MASK]",
    "[MASK][MASK][MASK].",
    "The [MASK] cat[MASK] on [MASK]!",
    "un[MASK] - [MASK]able\t[MASK] [MASK]",
    "(  [MASK]) [MASK], [MASK]",
]


@cache
def page(family, text):
    vocabulary = Vocabulary(build(family))
    places = find(vocabulary, text, needs_context=False)
    sheet = Sheet(vocabulary, places.encoded, places.positions, places.ids, places.at)
    known = [id for id in range(vocabulary.size) if id not in vocabulary.special_ids]
    return Page(sheet, vocabulary.size, np.array(known))


def draw_tokens(data, sheet):
    """Tokens at all places; some of them next to each other in the vocabulary, where pieces of words lie together."""
    return tuple(int(data.draw(st.sampled_from(sheet.outcomes.tolist()))) for _ in range(sheet.size))


def demands(data, sheet, tokens):
    """Constraints that hold for the text that these tokens write, or that hold for most texts."""
    text = Writing(sheet, tokens).text
    place = data.draw(st.integers(0, sheet.size - 1))
    number = data.draw(st.sampled_from([0, 1, 2, -1, -2]))
    count = data.draw(st.integers(0, 3))
    own = data.draw(st.sampled_from(words(text) or ["a"]))
    part = data.draw(st.sampled_from([r"\w*", r".*[aeiou].*", r"[^a]*", r"\S+", ".*", r"(?!x).*", re.escape(own)]))
    found = [
        Required(own),
        Required(own.upper(), ignore_case=True),
        Forbidden(data.draw(st.sampled_from(["cat", "the", "a", "é", own]))),
        Length(max(0, len(text) - count), len(text) + count),
        Length(len(words(text)), len(words(text)), "words"),
        Word(own, place=place),
        Word(own, number=number),
        Pattern(re.escape(text)),
        Pattern(".*" + re.escape(text[len(text) // 2 :]), ignore_case=True),
        Pattern(part, place=place),
        Pattern(part, place=place, whole=True),
        Pattern(part, number=number),
        Predicate(lambda word: len(word) < 4, place=place, whole=True, name="short"),
        Predicate(lambda word: "e" not in word, number=-1, name="without e"),
    ]
    return [constraint for constraint in found if constraint.holds(Writing(sheet, tokens))]


@pytest.mark.parametrize("family", FAMILIES)
@given(st.data())
@settings(max_examples=15, deadline=None)
def test_a_solution_is_never_taken_out(family, data):
    sheet = page(family, data.draw(st.sampled_from(TEMPLATES)))
    tokens = draw_tokens(data, sheet)
    holding = demands(data, sheet, tokens)
    problem = Problem(sheet, holding, [constraint.on(sheet) for constraint in holding])
    shown = data.draw(st.lists(st.booleans(), min_size=sheet.size, max_size=sheet.size))
    domains = tuple(
        np.array([token]) if filled_in else every
        for token, filled_in, every in zip(tokens, shown, everything(sheet), strict=True)
    )
    for domain in (domains, tuple(np.array([token]) for token in tokens)):
        try:
            left = problem.propagated(domain)
        except Dead as dead:
            raise AssertionError(
                f"{holding[dead.number]} at {dead.place} for {Writing(sheet, tokens).text!r}"
            ) from None
        assert all(token in at for token, at in zip(tokens, left, strict=True))
    two = [propagator for propagator in problem.propagators if isinstance(propagator, AutomatonFilter)][:2]
    if len(two) == 2 and affordable(two[0].reader, two[1].reader):
        both = AutomatonFilter(sheet, together(sheet, two[0].reader, two[1].reader)).propagate(domains)
        assert all(token in at for token, at in zip(tokens, both, strict=True))


@pytest.mark.parametrize("family", FAMILIES)
@given(st.data())
@settings(max_examples=20, deadline=None)
def test_pieces_put_together_are_the_text_that_is_written(family, data):
    """Letters, what stands between, and who joins whom: the same text as `filled` writes, if no letter is torn."""
    sheet = page(family, data.draw(st.sampled_from(TEMPLATES)))
    tokens = draw_tokens(data, sheet)
    text, ended = "", False
    for place, (token, gap) in enumerate(zip(tokens, sheet.gaps, strict=True)):
        ended = ended if gap.follows else gap.ended
        joins = sheet.pieces.joined[token] and not gap.first and not ended
        between = "" if gap.masks and text[-1:].isspace() else gap.text
        text += (between.rstrip() if joins else between) + sheet.letters(place)[token]
        ended = bool(sheet.pieces.ends[token])
    if not any(UNFINISHED in sheet.letters(place)[token] for place, token in enumerate(tokens)):
        assert text + sheet.tail == Writing(sheet, tokens).text
    assert Writing(sheet, tokens).text == filled(sheet.vocabulary, sheet.encoded, sheet.positions, list(tokens))


@pytest.mark.parametrize("family", FAMILIES)
@given(st.data())
@settings(max_examples=20, deadline=None)
def test_what_is_settled_stays_as_it_is(family, data):
    """Words said to be settled while places are open are the words of every text to come."""
    sheet = page(family, data.draw(st.sampled_from(TEMPLATES)))
    tokens = draw_tokens(data, sheet)
    hidden = data.draw(st.lists(st.booleans(), min_size=sheet.size, max_size=sheet.size))
    part = Writing(sheet, tuple(None if hide else token for token, hide in zip(tokens, hidden, strict=True)))
    whole = Writing(sheet, tokens)
    for number in (0, 1, 2, -1, -2):
        assert part.word(number) in (None, whole.word(number))
    for place in range(sheet.size):
        assert part.word_at(place) in (None, whole.word_at(place))
    assert whole.words == words(whole.text)


@given(st.data(), st.sampled_from(["[MASK] [MASK] [MASK]", "a [MASK] [MASK]", "[MASK] - [MASK] b."]))
@settings(max_examples=60, deadline=None)
def test_without_a_count_just_what_stands_in_a_solution_is_kept(data, text):
    places = text.count("[MASK]")
    constraint = data.draw(constraints(places).filter(lambda each: not isinstance(each, Length | Predicate)))
    conditionals = law(len(text.split()))
    sheet = Page(template(conditionals, text), len(SYMBOLS), np.arange(len(SYMBOLS)))
    propagator = constraint.on(sheet)
    if not isinstance(propagator, AutomatonFilter):
        return
    solutions = [ids for ids, written in texts(text).items() if demanded(constraint, text, ids, written)]
    try:
        kept = propagator.propagate(everything(sheet))
    except Contradiction:
        assert not solutions
        return
    expected = [sorted({ids[place] for ids in solutions}) for place in range(places)]
    if not isinstance(constraint, Pattern) or (constraint.number is None and not constraint.whole):
        assert [each.tolist() for each in kept] == expected
    assert all(set(own) <= set(each.tolist()) for own, each in zip(expected, kept, strict=True))


def test_a_word_of_several_tokens_needs_neighbouring_places():
    sheet = page("wordpiece-uncased", "[MASK] the [MASK]")
    found = begin(Problem(sheet, [Required("casino")], [Required("casino").on(sheet)]))
    spelt = "the tokenizer spells it with 2 tokens (cas ##ino), for which there is no room"
    assert found == f"no text satisfies: the word 'casino' is required; {spelt}"
    sheet = page("wordpiece-uncased", "the [MASK] [MASK] sleep")
    domains = begin(Problem(sheet, [Required("casino")], [Required("casino").on(sheet)]))
    spelt = [{sheet.letters(place)[token] for token in tokens} for place, tokens in enumerate(domains)]
    assert spelt == [{"cas"}, {"ino"}]  # with two places, no other pieces make it


@pytest.mark.parametrize(
    ("family", "word"), [("bytelevel-trimmed", "ñ"), ("bytelevel-untrimmed", "ñ"), ("bytelevel-trimmed", "🙂")]
)
def test_a_letter_of_several_bytes_can_be_required(family, word):
    vocabulary = Vocabulary(build(family))
    [encoded] = vocabulary.encode([word])
    ids = tuple(encoded.ids[~encoded.special].tolist())
    assert len(ids) > 1
    sheet = page(family, "x" + "[MASK]" * (len(ids) + 1))
    problem = Problem(sheet, [Pattern(f".*{word}.*")], [Pattern(f".*{word}.*").on(sheet)])
    domains = begin(problem)
    assert all(token in at for token, at in zip((*ids, ids[0]), domains, strict=True))
    assert problem.constraints[0].holds(Writing(sheet, (*ids, vocabulary.id("a"))))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_word_that_is_required_and_forbidden_is_told_whatever_the_tokenizer(family):
    word = "LAG" if family == "character-slow" else "cat"
    sheet = page(family, "[MASK][MASK][MASK][MASK]")
    both = [Required(word), Forbidden(word)]
    alone = [each.on(sheet) for each in both]
    assert begin(Problem(sheet, both[1:], alone[1:]))[0] is not None  # each alone can hold
    assert not isinstance(begin(Problem(sheet, both[:1], alone[:1])), str)
    found = begin(Problem(sheet, both, alone))
    assert found == f"no text satisfies both: the word {word!r} is required, and the word {word!r} is forbidden"


@pytest.mark.parametrize("family", ["bytelevel-trimmed", "bytelevel-untrimmed"])
def test_bytes_of_a_letter_are_a_letter(family):
    sheet = page(family, "a [MASK][MASK]b")
    short = begin(Problem(sheet, [Length(most=3)], [Length(most=3).on(sheet)]))
    blank = [token for token in sheet.outcomes.tolist() if not sheet.pieces.letters[token]]
    assert Writing(sheet, (blank[0], blank[0])).text == "a b"
    assert [tokens.tolist() for tokens in short] == [blank, blank]  # nothing else writes nothing, a torn letter neither


def test_a_place_in_a_word_and_the_word_at_a_place():
    sheet = page("wordpiece-uncased", "the [MASK] [MASK] [MASK].")
    tokens = tuple(sheet.vocabulary.id(token) for token in ("cas", "##ino", "sleep"))
    writing = Writing(sheet, tokens)
    assert writing.text == "the casino sleep."
    assert [writing.letters(place) for place in range(3)] == ["cas", "ino", "sleep"]
    assert [writing.word_at(place) for place in range(3)] == ["casino", "casino", "sleep"]
    assert [writing.text[slice(*writing.span(place))] for place in range(3)] == ["cas", "ino", "sleep"]
    assert (writing.word(0), writing.word(-1), writing.word(3)) == ("the", "sleep", "")
    part = Writing(sheet, (tokens[0], None, tokens[2]))
    assert part.word_at(0) is None  # it may go on
    assert part.word_at(2) == part.word(-1) == "sleep"
    assert part.word(1) is None
    assert Word("casino", place=0).holds(writing)
    assert not Word("casino", place=1).holds(writing)  # it begins before
    assert not Word("cas", place=0).holds(writing)  # it goes on
    assert Word("sleep", place=-1).holds(writing)


def test_a_test_of_the_last_word_leaves_tokens_that_pass_it_or_are_no_word_alone():
    sheet = page("wordpiece-uncased", "the [MASK] [MASK].")
    rhyme = Predicate(lambda word: word.endswith("at"), number=-1, name="rhymes with cat")
    first, last = rhyme.on(sheet).propagate(everything(sheet))
    assert first is everything(sheet)[0] or len(first) == len(sheet.outcomes)
    plain = {sheet.letters(1)[token] for token in last if not sheet.pieces.joined[token]}
    assert {word for word in plain if word.isalnum()} == {"at", "cat", "mat"} & set(sheet.pieces.letters)
    assert sheet.vocabulary.id("##t") in last  # "ma" and "##t" would do


def test_a_user_may_say_that_a_text_can_no_longer_become_right():
    sheet = page("no-specials", "[MASK] [MASK]")
    seen = []

    def viable(text):
        seen.append(text)
        return not text.startswith("dogs")

    constraint = Predicate(lambda text: True, viable=viable)
    dogs, cats = (np.array([sheet.vocabulary.id(token)]) for token in ("dogs", "cats"))
    every = everything(sheet)[0]
    constraint.on(sheet).propagate((cats, every))
    with pytest.raises(Contradiction):
        constraint.on(sheet).propagate((dogs, every))
    assert seen == ["cats [MASK]", "dogs [MASK]"]


def test_a_token_without_letters_is_in_no_word():
    sheet = page("unigram", "[MASK] [MASK].")
    nothing = sheet.vocabulary.id("▁")
    keep = Pattern(r"\w*", place=0, whole=True).on(sheet).propagate(everything(sheet))
    assert nothing in keep[0]  # its word is "", which matches
    blank = Writing(sheet, (nothing, sheet.vocabulary.id("▁on")))
    assert Pattern(r"\w*", place=0, whole=True).holds(blank)
    assert not Pattern(r"\w+", place=0, whole=True).holds(blank)
    inside, empty = page("unigram", "un[MASK]able"), Pattern("", place=0, whole=True)
    assert empty.holds(Writing(inside, (nothing,)))  # what stands around it is not its word
    assert nothing in empty.on(inside).propagate(everything(inside))[0]
