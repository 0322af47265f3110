"""Saying where: one meaning of a position, whichever verb is asked."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tokenizers
from tests.laws import Arbitrary

import besag
from besag.errors import BesagError
from besag.places.places import find
from besag.places.positions import TokenisedText, all_places, one_place, position_list, tokens_of
from besag.places.reading import read
from besag.samplers.editing.copying import movable
from besag.samplers.editing.rewrite import Rewrite, encode
from besag.samplers.sheet import template
from besag.vocabulary import Vocabulary

CATS = "The cat saw the cat."


@cache
def law(family):
    """Arbitrary conditionals over the vocabulary of a tokenizer."""
    found = Arbitrary()
    found.vocabulary = Vocabulary(tokenizers.build(family))
    found.width = found.vocabulary.size
    return found


@cache
def model(family):
    return besag.load(law(family), progress=False)


def located(family, text):
    vocabulary = law(family).vocabulary
    return TokenisedText.of(vocabulary, text, read(vocabulary, text))


def one(family, text, position):
    return one_place(located(family, text), position)


def every(family, text, *positions):
    return tokens_of(all_places(located(family, text), positions))


def told(ask, *given, **more):
    with pytest.raises(BesagError) as error:
        ask(*given, **more)
    return str(error.value)


# ---- all verbs agree


def attempt(ask):
    """What a verb finds, or None where it refuses."""
    try:
        return ask()
    except BesagError:
        return None


def kept_by_edit(family, text, position):
    lm = model(family)
    whole = {*lm.invert(text, depth=1.0, steps=1).places.tolist()}
    try:
        return whole - {*lm.invert(text, keep=[position], depth=1.0, steps=1).places.tolist()}
    except BesagError as error:
        if "all of it is kept" in str(error):
            return whole
        raise


def changed_by_edit(family, text, position):
    own = encode(law(family), text)
    return {*Rewrite.of(law(family), own, {position: None}).hidden.tolist()}


def kept_by_augment(family, text, position):
    encoded = read(law(family).vocabulary, text)
    every_word = movable(law(family), text, encoded, ())
    left = {tuple(word) for word in movable(law(family), text, encoded, [position])}
    return [{*word.tolist()} for word in every_word if tuple(word) not in left]


WORDS = {
    "wordpiece-cased": ["The", "cat", "cats", "mat", "at", "casino", "don't", ".", ",", "A"],
    "unigram": ["The", "cats", "sleep", "on", "at", "2", "the"],
    "bytelevel-untrimmed": ["The", "cats", "sleep", "café", "cafe\u0301", "🙂", "at"],
    "character-slow": ["L", "AG", "K", "KK", "VSE", "A"],
}


@st.composite
def questions(draw):
    """A text of few words, which come again, and something that may stand in it."""
    family = draw(st.sampled_from(sorted(WORDS)))
    words = draw(st.lists(st.sampled_from(WORDS[family]), min_size=2, max_size=5))
    text = words[0]
    for word in words[1:]:
        text += draw(st.sampled_from([" ", " ", " ", "", "  "])) + word
    tokens = read(law(family).vocabulary, text).tokens
    number = st.integers(-len(tokens) - 1, len(tokens))
    spans = st.tuples(st.integers(0, len(text)), st.integers(0, len(text) + 1))
    pieces = st.sampled_from([*WORDS[family], *tokens, words[0] + " " + words[1], "a", "##ino", "[MASK]", " "])
    return family, text, draw(st.one_of(number, spans, pieces))


@given(questions())
@settings(deadline=None, max_examples=100)
def test_all_verbs_agree_on_where_a_position_is(question):
    family, text, position = question
    where = located(family, text)
    fixed = {*np.flatnonzero(where.special).tolist()}

    # where a set is meant: sampling frees what editing keeps
    freed = attempt(lambda: {*template(law(family), text, free=[position]).positions})
    kept = attempt(lambda: kept_by_edit(family, text, position))
    unknown = {*np.flatnonzero(read(law(family).vocabulary, text).ids == law(family).vocabulary.unknown_id).tolist()}
    assert kept == (None if freed is None else freed - unknown)  # what is unknown is never drawn by an edit
    if freed is not None:
        for word in kept_by_augment(family, text, position):
            assert word & freed

    # where one is asked: editing, the score, the joint
    changed = attempt(lambda: changed_by_edit(family, text, position))
    asked = attempt(lambda: find(law(family).vocabulary, text, [position]).positions)
    if changed is None:
        assert asked is None
        stands = attempt(lambda: all_places(where, [position]))
        assert freed is None or (isinstance(position, str) and len(stands) > 1)  # in several places
    else:
        assert changed - fixed == freed
        seen = [token for token in sorted(changed) if where.offsets[token, 0] < where.offsets[token, 1]]
        assert asked == (tuple(seen or changed) if len(seen or changed) == 1 else None)
    if not isinstance(position, int):
        score = model(family).score(text)
        value = attempt(lambda: score[position])
        assert (value is None) == (changed is None)
        if changed is not None:
            own = read(law(family).vocabulary, text).places
            assert value == pytest.approx(score.log_probs[np.isin(own, sorted(changed))].sum())


# ---- the disagreements there were


def test_a_word_that_stands_twice_is_kept_twice_everywhere():
    family = "wordpiece-cased"
    cats = every(family, CATS, "cat")
    assert len(cats) == 2
    assert kept_by_edit(family, CATS, "cat") == cats
    free = {*template(law(family), CATS, free="all").positions}
    assert free - {*template(law(family), CATS, free="all", keep=["cat"]).positions} == cats
    edited = model(family).edit(CATS, {"saw": "cats"}, keep=["cat"], strength=1.0, depth=1.0)
    assert edited.text.count("cat") >= 2


def test_a_word_that_stands_twice_is_refused_with_the_same_words_where_one_is_asked():
    family = "wordpiece-cased"
    lm, here = model(family), one(family, CATS, (4, 7)).tokens[0]
    there = one(family, CATS, (16, 19)).tokens[0]
    message = (
        f"'cat' stands 2 times in 'The cat saw the cat.': token {here} (4:7), token {there} (16:19). "
        "Name one by its index or its characters."
    )
    assert told(lm.joint, CATS, ["The", "cat"]) == message
    assert told(lm.rectangles, CATS, ["The", "cat"]) == message
    assert told(lm.edit, CATS, {"cat": "man"}) == message
    by_characters = "'cat' stands 2 times in 'The cat saw the cat.': 4:7, 16:19. Name one by its characters."
    assert told(lm.score(CATS).__getitem__, "cat") == by_characters  # a score does not number special tokens


def test_a_negative_number_counts_from_the_end_everywhere():
    family = "wordpiece-cased"
    length = len(located(family, CATS).tokens)
    for number in range(-length + 1, -1):
        token = length + number
        assert find(law(family).vocabulary, CATS, [number]).positions == (token,)
        assert template(law(family), CATS, free=[number]).positions == (token,)
        assert kept_by_edit(family, CATS, number) == {token}
        assert changed_by_edit(family, CATS, number) == {token}


@pytest.mark.parametrize("number", [0, -1])
def test_special_tokens_are_refused_everywhere(number):
    family, text = "wordpiece-cased", "The man is at the mat."
    for ask in (
        lambda: find(law(family).vocabulary, text, [number]),
        lambda: template(law(family), text, free=[number]),
        lambda: template(law(family), text, free="all", keep=[number]),
        lambda: model(family).edit(text, {"man": "cat"}, keep=[number]),
        lambda: model(family).edit(text, {number: "cat"}),
        lambda: model(family).augment(text, keep=[number]),
    ):
        assert "a special token: only tokens of the text can be named (1 The, 2 man" in told(ask)
    inside = "The [SEP] man"  # though it is written in the text
    for ask in (lambda: find(law(family).vocabulary, inside, ["[SEP]"]), lambda: every(family, inside, "[SEP]")):
        assert "token 2 of 'The [SEP] man' is '[SEP]', a special token" in told(ask)
    assert every(family, inside, (0, 13)) == {1, 2, 3}
    assert template(law(family), inside, free=[(0, 13)]).positions == (1, 3)


def test_a_number_is_one_token_in_every_verb():
    """An emoji of several bytes: its characters are all of its tokens, a number is one."""
    family = "bytelevel-untrimmed"
    bytes_of = one(family, "at 🙂 the", "🙂").tokens
    assert len(bytes_of) > 2
    first = bytes_of[0]
    assert template(law(family), "at 🙂 the", free=[first]).positions == (first,)
    assert kept_by_edit(family, "at 🙂 the", first) == {first}
    assert every(family, "at 🙂 the", (3, 4)) == {*bytes_of}


# ---- what is a word


def test_a_word_is_whole_where_words_are_spaced():
    assert one("wordpiece-cased", "The man is at the mat.", "at")[:2] == (11, 13)
    message = "'ma' does not stand in 'The man' as a whole word or a token: name its characters, 4:6."
    assert told(one, "wordpiece-cased", "The man", "ma") == message
    assert one("wordpiece-cased", "The cat_mat at", "at")[:2] == (12, 14)
    assert one("wordpiece-cased", "don't", "don")[:2] == (0, 3)


def test_anywhere_where_they_are_not():
    assert one("character-slow", "MKTAY", "TA") == (2, 4, (3, 4))
    assert every("character-slow", "AAAK", "AA") == {1, 2, 3}  # overlaps count
    assert "stands 2 times in 'AAAK': tokens 1, 2 (0:2), tokens 2, 3 (1:3)" in told(one, "character-slow", "AAAK", "AA")
    score = model("character-slow").score("MKTAY")
    assert score["TA"] == pytest.approx(score.log_probs[2:4].sum())


def test_letters_of_scripts_without_spaces_are_words():
    text = "我的猫睡了 고양이"
    assert one("bytelevel-untrimmed", text, "猫")[:2] == (2, 3)
    assert one("bytelevel-untrimmed", text, "的猫")[:2] == (1, 3)
    assert "as a whole word" in told(one, "bytelevel-untrimmed", text, "양이")  # Korean has spaces


def test_an_accent_stays_with_its_letter():
    for family in ("bytelevel-untrimmed", "wordpiece-cased"):
        text = "the cafe\u0301 at"
        assert one(family, text, "cafe\u0301")[:2] == (4, 9)
        assert "does not stand in" in told(one, family, text, "cafe")
        assert "does not stand in" in told(one, family, text, "\u0301")
    assert one("bytelevel-untrimmed", "cafe\u0301 cafe", "cafe")[:2] == (6, 10)


def test_an_emoji_is_not_taken_apart():
    family = "bytelevel-untrimmed"
    text = "👩 saw 👩\u200d💻 and 👩🏽"
    assert one(family, text, "👩")[:2] == (0, 1)
    assert one(family, text, "👩\u200d💻")[:2] == (6, 9)
    assert one(family, text, "👩🏽")[:2] == (14, 16)
    assert "does not stand in" in told(one, family, text, "💻")


def test_a_token_is_meant_where_no_word_is_written_so():
    assert one("wordpiece-cased", "The man is at the casino.", "##ino") == (21, 24, (7,))
    assert one("unigram", "The cats sleep", "▁cats").tokens == (2,)
    assert one("wordpiece-uncased", "CATS at", "cats").tokens == (1,)
    assert "Did you mean 'man'?" in told(one, "wordpiece-cased", "The man", "mann")


def test_a_lone_space_of_the_tokenizer_goes_with_its_word():
    family, text = "unigram", "at xT the"
    where = located(family, text)
    stretch = one_place(where, "xT")
    blank = [token for token in stretch.tokens if where.offsets[token, 0] == where.offsets[token, 1]]
    assert [where.tokens[token] for token in blank] == ["▁"]
    assert template(law(family), text, free=["xT"]).positions == stretch.tokens
    number = blank[0]
    assert one_place(where, number).tokens == (number,)
    assert "covers no character of 'at xT the'" in told(model(family).edit, text, {number: "at"})


# ---- masks and characters


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_a_mask_is_named_however_it_is_written(family):
    mask = law(family).vocabulary.mask_token
    for written in ("[MASK]", mask):
        for named in ("[MASK]", mask):
            text = f"L {written} A"
            assert one(family, text, named)[:2] == (2, 2 + len(written))
            assert one(family, text, f"L {named}")[:2] == (0, 2 + len(written))
    assert len(every(family, f"[MASK] {mask} L", "[MASK]")) == 2


@pytest.mark.parametrize("mask", ["[M]", "<the-mask-of-this-model>"])
def test_characters_are_those_that_were_written(mask):
    """The model's own mask may be longer or shorter than [MASK]."""
    vocabulary = Vocabulary(tokenizers.build("no-specials"))
    vocabulary.tokenizer.add_special_tokens({"mask_token": mask})
    vocabulary = Vocabulary(vocabulary.tokenizer)
    text = f"The [MASK] man [MASK] is {mask} at"
    where = TokenisedText.of(vocabulary, text, read(vocabulary, text))
    words = text.split()
    for token, (start, end) in enumerate(where.offsets.tolist()):
        assert text[start:end] == words[token]
        assert one_place(where, (start, end)).tokens == one_place(where, (start, start + 1)).tokens == (token,)
        assert one_place(where, (end - 1, end)).tokens == (token,)
    assert tokens_of(all_places(where, ["[MASK]"])) == {1, 3, 5}
    assert "token 1 (4:10), token 3 (15:21)" in told(one_place, where, "[MASK]")
    assert tokens_of(all_places(where, [(11, 24)])) == {2, 3, 4}


def test_what_a_text_does_not_have_passes_only_where_many_texts_are_meant():
    where = located("wordpiece-cased", "The man is at the mat.")
    named = ["man", "dog", 99, (70, 80), -3]
    assert tokens_of(all_places(where, named, missing=True)) == {2, 6}
    for position in ("dog", 99, (70, 80)):
        assert told(all_places, where, [position]) == told(one_place, where, position)
    [row] = model("wordpiece-cased").augment("The man", keep=["dog", "man", 7, "The"])
    assert row.status == "fixed"


@pytest.mark.parametrize("wrong", [True, None, 1.5, "", " ", (1,), (1, 2, 3), (1, "a"), (True, 2), {}])
def test_what_can_be_no_position(wrong):
    where = located("wordpiece-cased", "The man")
    for ask in (lambda: one_place(where, wrong), lambda: position_list("keep", [wrong])):
        assert "is no position: give a token's index, a word or characters (start, end)." in told(ask)


@pytest.mark.parametrize("wrong", ["man", 3, np.int64(3)])
def test_positions_come_in_a_list(wrong):
    assert told(position_list, "keep", wrong) == f"keep={wrong!r}: name places in a list, as [{wrong!r}]."
    assert "positions=None: name places in a list" in told(position_list, "positions", None)
    assert position_list("keep", np.array([1, 2])) == [1, 2]
    assert position_list("keep", ["a", [1, 2]]) == ["a", (1, 2)]


def test_a_number_that_is_a_word_of_the_text_is_pointed_out():
    assert "The word is '1999', in a command word:1999." in told(one, "no-specials", "at 1999 the", 1999)


def test_many_choices_are_not_all_spelt_out():
    message = told(one, "wordpiece-cased", "the " * 40, "the")
    assert "stands 40 times" in message
    assert message.count("token ") == 12
