"""Masks however they are written, and the places of a text that can be asked."""

import pytest
from tests import tokenizers

from besag.errors import BesagError
from besag.places.reading import MASK, masks, read, text_places
from besag.vocabulary import Vocabulary


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_a_mask_may_be_written_for_any_model(family):
    vocabulary = Vocabulary(tokenizers.build(family))
    for written in (MASK, vocabulary.mask_token):
        encoded = read(vocabulary, f"a {written} {written}")
        assert (encoded.ids == vocabulary.mask_id).sum() == 2


@pytest.mark.parametrize("family", ["wordpiece-cased", "unigram", "character-slow", "no-specials"])
def test_a_text_of_masks_has_as_many_places(family):
    vocabulary = Vocabulary(tokenizers.build(family))
    encoded = read(vocabulary, masks(vocabulary, 5))
    assert len(text_places(vocabulary, encoded)) == 5
    assert (encoded.ids[text_places(vocabulary, encoded)] == vocabulary.mask_id).all()


def test_special_tokens_are_not_asked_though_they_are_written():
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    encoded = read(vocabulary, "The [SEP] 猫 [MASK] man")  # [CLS] The [SEP] [UNK] [MASK] man [SEP]
    assert text_places(vocabulary, encoded) == [1, 3, 4, 5]
    assert text_places(vocabulary, read(vocabulary, "  ")) == []


def test_only_text_is_read():
    with pytest.raises(BesagError, match="expected a text, got 7 of type int"):
        read(Vocabulary.of_symbols(["a"]), 7)
