from functools import cache

import numpy as np
import pytest
from tests import tokenizers

from besag.errors import BesagError
from besag.places.places import find
from besag.vocabulary import Vocabulary

TEXT = "The man is at the casino."


def vocabulary(family: str) -> Vocabulary:
    return Vocabulary(tokenizers.build(family))


@cache
def shared() -> Vocabulary:
    """[CLS] The man is at the cas ##ino . [SEP]"""
    return vocabulary("wordpiece-cased")


@pytest.fixture
def cased() -> Vocabulary:
    return shared()


def refused(*args, **kwargs) -> str:
    with pytest.raises(BesagError) as error:
        find(*args, **kwargs)
    return str(error.value)


def test_words_indices_spans_and_tokens_name_the_same_places(cased):
    expected = (2, 3)
    for positions in (("man", "is"), (2, 3), (-8, -7), ((4, 7), (8, 10)), (np.int64(2), [8, 10]), ("man", (9, 10))):
        places = find(cased, TEXT, positions)
        assert places.positions == places.at == expected
        assert places.gold == (cased.id("man"), cased.id("is"))
        assert places.ids.tolist() == places.encoded.ids.tolist()
    assert find(cased, TEXT, ("is", "man")).positions == (3, 2)  # in the order asked
    assert find(cased, TEXT, ("##ino", ".")).positions == (7, 8)  # a token as the tokenizer writes it, punctuation
    assert find(cased, TEXT, ("man", "is")).title == "'man' (token 2) and 'is' (token 3)"


def test_a_word_is_a_whole_word_of_the_text(cased):
    assert find(cased, "The man is at the mat.", ("at", "man")).positions == (4, 2)  # not the "at" of "mat"
    assert find(cased, "a cat, a man: at", ("at",)).positions == (7,)
    assert "does not stand in" in refused(cased, TEXT, ("asin", "man"))


def test_sentence_pieces_and_residues():
    pieces = vocabulary("unigram")
    assert find(pieces, "The cats sleep", ("cats", "The")).positions == (2, 1)
    assert find(pieces, "The cats sleep", ("▁cats",)).positions == (2,)
    residues = vocabulary("character-slow")  # words are no help where there is no white space
    assert find(residues, "MKTAY", ("K", "Y")).positions == (2, 5)
    assert (
        "stands 2 times in 'MKTKY': token 2 (1:2), token 4 (3:4). Name one by its index or its characters."
        in refused(residues, "MKTKY", ("K", "Y"))
    )


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_masks_are_found_in_the_text_of_any_model(family):
    words = vocabulary(family)
    places = find(words, "The [MASK] sleep [MASK].")
    assert (places.encoded.ids[list(places.positions)] == words.mask_id).all()
    assert len(places.at) == 2
    assert places.gold is None
    assert words.mask_token in places.encoded.text


def test_a_mask_beside_a_word_hides_the_gold(cased):
    text = "The [MASK] is here."
    assert find(cased, text, ("[MASK]", "is")).gold is None
    assert find(cased, text, ("The", "is")).gold == (cased.id("The"), cased.id("is"))
    assert find(cased, text, ("[MASK]", "is"), gold=["man", "is"]).gold == (cased.id("man"), cased.id("is"))


def test_the_unknown_token_is_no_gold(cased):
    places = find(cased, "The 猫 is at the mat.", ("猫", "is"))
    assert places.encoded.tokens[places.positions[0]] == "[UNK]"
    assert places.gold is None


def test_spans_count_the_characters_that_were_written():
    words = vocabulary("no-specials")
    words.mask_token = "<the-mask-of-this-model>"
    words.tokenizer.add_special_tokens({"mask_token": words.mask_token})
    words.mask_id = words.tokenizer.mask_token_id
    text = "The [MASK] man [MASK] is"
    start = text.index("man")
    assert find(words, text, ((start, start + 3), (4, 10))).positions == (2, 1)
    assert find(words, text, ((len(text) - 2, len(text)),)).positions == (4,)


def test_gold_is_for_masks(cased):
    text = "The [MASK] is [MASK] the mat."
    assert find(cased, text, gold=["man", "at"]).gold == (cased.id("man"), cased.id("at"))
    assert "must name 2 words" in refused(cased, text, gold=["man"])
    assert "must name 2 words" in refused(cased, text, gold="man")
    assert "where the text says 'man'" in refused(cased, TEXT, ("man", "is"), gold=["A", "is"])
    assert "'casino' is 2 tokens" in refused(cased, text, gold=["casino", "at"])


def test_what_cannot_be_a_place_is_said(cased):
    assert "has no mask: write [MASK]" in refused(cased, TEXT)
    assert "same position, token 2 ('man')" in refused(cased, TEXT, ("man", 2))
    assert "there is no token 99" in refused(cased, TEXT, (1, 99))
    assert "there is no token -11" in refused(cased, TEXT, (1, -11))
    assert "token 0 of 'The man is at the casino.' is '[CLS]', a special token" in refused(cased, TEXT, (0, 1))
    assert "is '[SEP]', a special token" in refused(cased, "The [SEP] man", (2, 1))  # though it is written in the text
    assert "Did you mean 'man'?" in refused(cased, TEXT, ("mann", "is"))
    assert "stands 2 times" in refused(cased, "the man at the mat", ("the", "man"))
    assert "4:4 is no span" in refused(cased, TEXT, ((4, 4), 1))
    assert "20:99 is no span" in refused(cased, TEXT, ((20, 99), 1))
    assert "(1, 2, 3) is no position" in refused(cased, TEXT, ((1, 2, 3), 1))
    assert "no token stands at 3:4 of" in refused(cased, TEXT, ((3, 4), 1))
    assert "True is no position" in refused(cased, TEXT, (True, 2))
    assert "None is no position" in refused(cased, TEXT, (None, 2))
    assert "positions='man'" in refused(cased, TEXT, "man")
    assert "positions is empty" in refused(cased, TEXT, ())
    assert "'' is no position" in refused(cased, TEXT, ("", "man"))
    assert "expected a text" in refused(cased, 7)
    cased.mask_id, mask = None, cased.mask_id
    try:
        assert "has no mask token" in refused(cased, TEXT)
    finally:
        cased.mask_id = mask


def test_a_word_of_several_tokens_is_a_block(cased):
    message = refused(cased, TEXT, ("casino", "is"))
    assert message == (
        "'casino' is 2 tokens (cas ##ino): give their positions (6, 7) to joint(...) for a block joint over all of "
        "them."
    )
    assert "(18, 24) is 2 tokens" in refused(cased, TEXT, ((18, 24), 2))
    assert "tokens 1, 2 (0:6), tokens 4, 5 (10:16)" in refused(cased, "casino is casino", ("casino", "is"))
