"""Tokens put into a text: the words that come out, with every kind of tokenizer."""

import pytest
from tests.tokenizers import FAMILIES, build
from transformers import AutoTokenizer

from besag import models
from besag.places.filling import filled
from besag.places.places import find
from besag.vocabulary import Vocabulary


def fill(vocabulary, text, *tokens):
    places = find(vocabulary, text)
    return filled(vocabulary, places.encoded, places.positions, [vocabulary.id(token) for token in tokens])


def test_the_rest_of_the_text_stays_as_it_was_written():
    text = "  THE Cats, 🙂[MASK]  on\tthe [MASK] !  "
    assert fill(Vocabulary(build("wordpiece-uncased")), text, "sleep", "mat") == "  THE Cats, 🙂sleep  on\tthe mat !  "
    assert fill(Vocabulary.of_symbols(["a", "b"]), "a [MASK]  b", "b") == "a b  b"


@pytest.mark.parametrize("family", ["wordpiece-uncased", "wordpiece-slow"])
def test_pieces_of_words_are_joined_to_the_word_before(family):
    vocabulary = Vocabulary(build(family))
    assert fill(vocabulary, "the cat [MASK] sleep.", "##s") == "the cats sleep."
    assert fill(vocabulary, "[MASK] [MASK] [MASK] sleep.", "the", "cat", "##s") == "the cats sleep."
    assert fill(vocabulary, "The cats sleep [MASK].", "night") == "The cats sleep night."
    assert fill(vocabulary, "[MASK][MASK][MASK] sleep.", "the", "cat", "##s") == "the cats sleep."


def test_places_are_filled_in_whatever_order_they_are_named():
    vocabulary = Vocabulary(build("wordpiece-uncased"))
    places = find(vocabulary, "the cat sleep at night.", positions=["at", "the"])
    ids = [vocabulary.id("on"), vocabulary.id("a")]
    assert filled(vocabulary, places.encoded, places.positions, ids) == "a cat sleep on night."


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "character-slow"])
def test_the_own_tokens_of_a_text_give_it_back(family):
    vocabulary = Vocabulary(build(family))
    text = "The cats sleep on the mat."
    [encoded] = vocabulary.encode([text])
    inner = [position for position in range(len(encoded.ids)) if not encoded.special[position]]
    for positions in (inner[1:3], inner[2:], inner[::2], inner):
        filling = filled(vocabulary, encoded, positions, [int(encoded.ids[position]) for position in positions])
        assert filling.lower() == text.lower()


def test_the_residues_of_a_protein_stay_together():
    vocabulary = Vocabulary(build("character-slow"))
    assert fill(vocabulary, "LAG[MASK]VS", "E") == "LAGEVS"
    assert fill(vocabulary, "LAG[MASK][MASK]VS", "E", "R") == "LAGERVS"
    assert fill(vocabulary, "L A G [MASK] [MASK]", "E", "R") == "L A G E R"


@pytest.mark.parametrize("family", ["bytelevel-trimmed", "bytelevel-untrimmed"])
def test_a_letter_of_several_bytes_is_put_together(family):
    vocabulary = Vocabulary(build(family))
    smile = [token for token in vocabulary.encode(["x 🙂"])[0].tokens if len(token) == 1][1:]
    assert len(smile) > 2
    assert fill(vocabulary, f"I like {'[MASK]' * len(smile)}.", *smile) == "I like 🙂."


def test_a_token_that_is_nothing_but_a_space_is_written_once():
    vocabulary = Vocabulary(AutoTokenizer.from_pretrained(models.path()))
    assert fill(vocabulary, "In [MASK] [MASK] [MASK].", "▁", "2", "0") == "In 20."
    assert fill(vocabulary, "In [MASK] [MASK].", "▁the", "▁sea") == "In the sea."
