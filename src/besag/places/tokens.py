"""Which token a word is where it stands: "man" after a space may be the token "▁man".

Knows how a tokenizer reads a word in its text. Refuses to take a word of several tokens for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from besag.alignment import MARKS
from besag.checks import is_whole
from besag.errors import BesagError, quoted
from besag.vocabulary import Encoded, Vocabulary

if TYPE_CHECKING:
    from besag.places.places import Places


class Token(str):
    """A token as its tokenizer writes it, which remembers its id: "man" may be a word and a piece of one."""

    id: int

    @classmethod
    def of(cls, vocabulary: Vocabulary, id: int) -> Token:
        token = cls(vocabulary.token(id))
        token.id = int(id)
        return token


def token_id(vocabulary: Vocabulary, places: Places, place: int, token: str | int) -> int:
    """The id of a token: its own, of the token that a word would be at this place, or of the one written so."""
    return token_ids(vocabulary, places.encoded, places.positions[place], [token])[0]


def token_ids(vocabulary: Vocabulary, encoded: Encoded, position: int, words: Sequence[str | int]) -> list[int]:
    """The one token that each word is when it stands at a position of the text.

    A word is read in the text, where "man" after a space may be the token "▁man"; what is no word there is a token as
    the tokenizer writes it ("##ing"). A `Token` is itself, and a number the id of one.
    """
    for word in words:
        if not isinstance(word, str) and not is_whole(word, 0):
            raise BesagError(f"a token is named by its text or its id, not by {quoted(word)}")
    start, end = encoded.offsets[position].tolist()
    written = [word for word in dict.fromkeys(words) if isinstance(word, str) and not isinstance(word, Token)]
    plain = [word for word in written if word.strip() and not MARKS.search(word)]
    texts = [encoded.text[:start] + word + encoded.text[end:] for word in plain]
    readings = dict(zip(plain, vocabulary.encode(texts), strict=True))
    return [
        _token_id(vocabulary, encoded, position, word, readings.get(word))
        if isinstance(word, str) and not isinstance(word, Token)
        else int(getattr(word, "id", word))
        for word in words
    ]


def _token_id(vocabulary: Vocabulary, encoded: Encoded, position: int, word: str, reading: Encoded | None) -> int:
    start = int(encoded.offsets[position, 0])
    pieces = () if reading is None else _covering(reading, start, start + len(word))
    if reading is not None and len(pieces) == 1:
        [piece] = pieces  # a piece that reaches beyond the word has swallowed a neighbour
        alone = reading.offsets[piece].tolist() == [start, start + len(word)]
        if alone and reading.ids[piece] != vocabulary.unknown_id:
            return int(reading.ids[piece])
    try:
        return vocabulary.id(word)
    except BesagError:
        if reading is None or len(pieces) < 2:
            raise
        raise BesagError(
            f"{word!r} is {len(pieces)} tokens at token {position} of {quoted(encoded.text)} "
            f"({' '.join(reading.tokens[piece] for piece in pieces)}), and one place holds one: write a mask for each "
            "of them and ask for the block joint over all."
        ) from None


def _covering(encoded: Encoded, start: int, end: int) -> tuple[int, ...]:
    """The tokens that share a character with a span of the text as encoded."""
    first, last = encoded.offsets.T
    return tuple(np.flatnonzero(~encoded.special & (first < end) & (last > start)).tolist())
