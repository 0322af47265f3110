"""Which places of a text are asked together, from what a user writes: token indices, words, spans, or masks.

Knows text, tokens and where they stand. Refuses to know models and laws, to guess between two readings, and to take a
word of several tokens for one. A text longer than the model is cut to a window around the places, with as much text on
either side as fits and the special tokens at both ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from besag.alignment import MARKS
from besag.arrays import Ints
from besag.errors import BesagError, nearest
from besag.results.words import quoted
from besag.vocabulary import Encoded, Vocabulary

Position: TypeAlias = int | str | tuple[int, int]

MASK = "[MASK]"  # how a mask may be written for any model


@dataclass(frozen=True, eq=False)
class Places:
    encoded: Encoded
    ids: Ints  # (L,) as shown to the model: the whole text, or a window of it
    at: tuple[int, ...]  # where the places stand in `ids`
    positions: tuple[int, ...]  # where they stand in `encoded.ids`
    gold: tuple[int, ...] | None  # the text's own tokens there; None when one is hidden by a mask or unknown

    @property
    def title(self) -> str:
        """The places as a message names them: "'▁man' (token 2) and '▁is' (token 3)"."""
        names = [f"{self.encoded.tokens[position].strip()!r} (token {position})" for position in self.positions]
        return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


class Token(str):
    """A token as its tokenizer writes it, which remembers its id: "man" may be a word and a piece of one."""

    id: int

    @classmethod
    def of(cls, vocabulary: Vocabulary, id: int) -> Token:
        token = cls(vocabulary.token(id))
        token.id = int(id)
        return token


def find(
    vocabulary: Vocabulary,
    text: str,
    positions: Sequence[Position] | None = None,
    max_length: int | None = None,
    *,
    gold: Sequence[str] | None = None,
) -> Places:
    """The places that `positions` name; None means every mask of the text.

    A position is the index of a token (special tokens counted, negative from the end), a word of the text or a token as
    the tokenizer writes it, or a span of characters (start, end). "[MASK]" is a mask in the text of any model. `gold`
    names the true tokens where masks stand.
    """
    if not isinstance(text, str):
        raise BesagError(f"expected a text, got {text!r} of type {type(text).__name__}.")
    if vocabulary.mask_id is None or vocabulary.mask_token is None:
        raise BesagError("this tokenizer has no mask token, so no place of a text can be hidden and asked.")
    [encoded] = vocabulary.encode([text.replace(MASK, vocabulary.mask_token)])
    if positions is None:
        found = tuple(np.flatnonzero(encoded.ids == vocabulary.mask_id).tolist())
        if not found:
            raise BesagError(f"{quoted(text)} has no mask: write {MASK} where tokens are asked, or give positions.")
    else:
        found = _positions(vocabulary, encoded, text, positions)
    ids, start = _window(encoded, found, max_length)
    own = tuple(encoded.ids[list(found)].tolist())
    if gold is not None:
        own = _gold(vocabulary, encoded, found, own, gold)
    known = not {vocabulary.mask_id, vocabulary.unknown_id} & {*own}
    return Places(encoded, ids, tuple(position - start for position in found), found, own if known else None)


def token_id(vocabulary: Vocabulary, places: Places, place: int, token: str | int) -> int:
    """The id of a token: its own, of the token that a word would be at this place, or of the one written so."""
    if isinstance(token, int | np.integer) and not isinstance(token, bool):
        return int(token)
    if not isinstance(token, str):
        raise BesagError(f"a token is named by its text or its id, not by {token!r}")
    return token_ids(vocabulary, places.encoded, places.positions[place], [token])[0]


def token_ids(vocabulary: Vocabulary, encoded: Encoded, position: int, words: Sequence[str]) -> list[int]:
    """The one token that each word is when it stands at a position of the text.

    A word is read in the text, where "man" after a space may be the token "▁man"; what is no word there is a token as
    the tokenizer writes it ("##ing"). A `Token` is itself.
    """
    start, end = encoded.offsets[position].tolist()
    written = [word for word in dict.fromkeys(words) if not isinstance(word, Token)]
    plain = [word for word in written if word.strip() and not MARKS.search(word)]
    texts = [encoded.text[:start] + word + encoded.text[end:] for word in plain]
    readings = dict(zip(plain, vocabulary.encode(texts), strict=True))
    return [
        word.id if isinstance(word, Token) else _token_id(vocabulary, encoded, position, word, readings.get(word))
        for word in words
    ]


def _token_id(vocabulary: Vocabulary, encoded: Encoded, position: int, word: str, reading: Encoded | None) -> int:
    start = int(encoded.offsets[position, 0])
    pieces = () if reading is None else _overlapping(reading, start, start + len(word))
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


def _positions(vocabulary: Vocabulary, encoded: Encoded, text: str, positions: Sequence[Position]) -> tuple[int, ...]:
    if isinstance(positions, str) or not isinstance(positions, Sequence | np.ndarray):
        raise BesagError(f"positions={positions!r}: give a list of token indices, words or (start, end) spans.")
    if not len(positions):
        raise BesagError("positions is empty: give token indices, words or (start, end) spans; None means all masks.")
    found = [_position(vocabulary, encoded, text, position) for position in positions]
    for (one, first), (other, second) in combinations(zip(positions, found, strict=True), 2):
        if first == second:
            raise BesagError(
                f"{one!r} and {other!r} are the same position, token {first} ({encoded.tokens[first].strip()!r}) of "
                f"{quoted(text)}: places asked together must differ."
            )
    for position in found:
        special = encoded.ids[position] in vocabulary.special_ids - {vocabulary.mask_id, vocabulary.unknown_id}
        if encoded.special[position] or special:
            raise BesagError(
                f"token {position} of {quoted(text)} is {encoded.tokens[position]!r}, a special token: only tokens of "
                f"the text are asked ({_numbered(encoded)})."
            )
    return tuple(found)


def _position(vocabulary: Vocabulary, encoded: Encoded, text: str, position: Position) -> int:
    if isinstance(position, str):
        tokens = _word(vocabulary, encoded, text, position)
    elif isinstance(position, tuple | list):
        tokens = _overlapping(encoded, *_span(vocabulary, text, position))
        if not tokens:
            raise BesagError(f"no token stands at the characters {position} of {quoted(text)}.")
    else:
        if isinstance(position, bool) or not isinstance(position, int | np.integer):
            raise BesagError(f"{position!r} is no position: give a token index, a word or a span (start, end).")
        length = len(encoded.ids)
        if not -length <= position < length:
            raise BesagError(
                f"there is no token {position} in {quoted(text)}, which has {length}: {_numbered(encoded)}."
            )
        tokens = (int(position) % length,)
    if len(tokens) > 1:
        raise BesagError(
            f"{position!r} is {len(tokens)} tokens ({' '.join(encoded.tokens[token] for token in tokens)}): give their "
            f"positions {tokens} to joint(...) for a block joint over all of them."
        )
    return tokens[0]


def _word(vocabulary: Vocabulary, encoded: Encoded, text: str, word: str) -> tuple[int, ...]:
    """The tokens of a word that stands once in the text."""
    occurrences = _occurrences(vocabulary, encoded, word)
    if not occurrences:
        words = {encoded.text[start:end] for start, end in encoded.offsets.tolist()} | {*encoded.text.split()}
        raise BesagError(f"{word!r} does not stand in {quoted(text)}.{nearest(word, words - {''})}")
    if len(occurrences) > 1:
        places = ", ".join(str(tokens[0] if len(tokens) == 1 else tokens) for tokens in occurrences)
        raise BesagError(
            f"{word!r} stands {len(occurrences)} times in {quoted(text)}, as the tokens {places}: give one index."
        )
    return occurrences[0]


def _occurrences(vocabulary: Vocabulary, encoded: Encoded, word: str) -> list[tuple[int, ...]]:
    """The tokens of each place where a word stands: whole in the text or, if it does not, as one token of it."""
    word = word.replace(MASK, vocabulary.mask_token or MASK)
    if not word.strip():
        return []
    before = r"(?<!\w)" if re.match(r"\w", word) else ""
    after = r"(?!\w)" if re.search(r"\w$", word) else ""
    matches = re.finditer(before + re.escape(word) + after, encoded.text)
    found = dict.fromkeys(_overlapping(encoded, *match.span()) for match in matches)
    alike: list[tuple[int, ...]] = [
        (index,)
        for index, (token, (start, end)) in enumerate(zip(encoded.tokens, encoded.offsets.tolist(), strict=True))
        if not encoded.special[index] and word in (token, encoded.text[start:end])
    ]
    return [tokens for tokens in found if tokens] or alike


def _span(vocabulary: Vocabulary, text: str, span: Sequence[int]) -> tuple[int, int]:
    """Characters of the text as the user wrote it, in the text as encoded: a mask may be written longer there."""
    whole = [int(number) for number in span if isinstance(number, int | np.integer)]
    if len(span) != 2 or len(whole) != 2 or not 0 <= whole[0] < whole[1] <= len(text):
        raise BesagError(f"{span!r} is no span (start, end) within the {len(text)} characters of {quoted(text)}.")
    start, end = whole
    longer = len(vocabulary.mask_token or MASK) - len(MASK)
    masks = [match.start() for match in re.finditer(re.escape(MASK), text)]
    return start + longer * sum(mask < start for mask in masks), end + longer * sum(mask < end for mask in masks)


def _overlapping(encoded: Encoded, start: int, end: int) -> tuple[int, ...]:
    """The tokens that share a character with a span."""
    first, last = encoded.offsets.T
    return tuple(np.flatnonzero(~encoded.special & (first < end) & (last > start)).tolist())


def _gold(
    vocabulary: Vocabulary, encoded: Encoded, found: tuple[int, ...], own: tuple[int, ...], gold: Sequence[str]
) -> tuple[int, ...]:
    if isinstance(gold, str) or len(gold) != len(found):
        raise BesagError(f"gold={gold!r} must name {len(found)} words, one for each place.")
    named = tuple(
        token_ids(vocabulary, encoded, position, [word])[0] for position, word in zip(found, gold, strict=True)
    )
    for position, word, token, stands in zip(found, gold, named, own, strict=True):
        if stands not in (vocabulary.mask_id, token):
            raise BesagError(
                f"gold names {word!r} for token {position}, where the text says {encoded.tokens[position]!r}: gold is "
                "for places that a mask hides."
            )
    return named


def _window(encoded: Encoded, found: tuple[int, ...], limit: int | None) -> tuple[Ints, int]:
    """The ids that a model of `limit` positions is shown, and how far the places move to the left by it."""
    ids = np.asarray(encoded.ids, np.int64)
    if limit is None or len(ids) <= limit:
        return ids, 0
    inside = np.flatnonzero(~encoded.special)
    lead, trail = int(inside[0]), len(ids) - 1 - int(inside[-1])
    room, body = limit - lead - trail, len(ids) - lead - trail
    first, last = min(found) - lead, max(found) - lead
    if last - first + 1 > room:
        raise BesagError(
            f"the tokens {min(found)} and {max(found)} stand {last - first} apart, and the model sees {max(room, 0)} "
            "tokens of text at a time: ask for places that are nearer to each other."
        )
    start = min(max((first + last + 1) // 2 - room // 2, 0), body - room)
    stretch = ids[lead + start : lead + start + room]
    return np.concatenate([ids[:lead], stretch, ids[len(ids) - trail :]]), start


def _numbered(encoded: Encoded) -> str:
    """The tokens of the text with their indices, a long text not whole."""
    inside = np.flatnonzero(~encoded.special).tolist()
    shown = inside if len(inside) <= 12 else [*inside[:8], None, *inside[-3:]]
    return ", ".join("…" if index is None else f"{index} {encoded.tokens[index].strip()}" for index in shown)
