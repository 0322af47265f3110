"""Which token a word is: read where it stands, or written as the tokenizer writes it."""

import pytest
from tests import tokenizers

from besag.errors import BesagError
from besag.places.places import find
from besag.places.tokens import Token, token_ids
from besag.vocabulary import Vocabulary

TEXT = "The man is at the casino."


def vocabulary(family: str) -> Vocabulary:
    return Vocabulary(tokenizers.build(family))


def test_words_are_read_where_they_stand():
    pieces = vocabulary("unigram")
    encoded = find(pieces, "The cats sleep", ("cats",)).encoded
    tokens = [pieces.token(token) for token in token_ids(pieces, encoded, 2, ["on", "▁the", "o", "cats"])]
    assert tokens == ["▁on", "▁the", "o", "▁cats"]  # "on" with the space before it; "▁o" is no token, so "o" is meant
    cased = vocabulary("wordpiece-cased")
    encoded = find(cased, TEXT, ("man",)).encoded
    assert token_ids(cased, encoded, 2, ["##ino", "mat"]) == [cased.id("##ino"), cased.id("mat")]
    with pytest.raises(BesagError, match=r"'casino' is 2 tokens at token 2 of .*\(cas ##ino\)"):
        token_ids(cased, encoded, 2, ["mat", "casino"])
    with pytest.raises(BesagError, match="'猫' is not a token of this vocabulary"):
        token_ids(cased, encoded, 2, ["猫"])
    with pytest.raises(BesagError, match="'' is not a token"):
        token_ids(cased, encoded, 2, [""])


def test_a_token_names_itself_though_its_letters_are_a_word():
    words = vocabulary("bytelevel-trimmed")
    places = find(words, TEXT, ("at", "the"))
    tokens = [Token.of(words, id) for id in range(words.size) if id not in words.special_ids]
    read = token_ids(words, places.encoded, places.positions[1], tokens)
    assert read == [token.id for token in tokens]
    plain = next(token for token in tokens if token == "t")
    assert token_ids(words, places.encoded, places.positions[1], [str(plain)]) != [plain.id]  # read as a word: " t"
