"""Which place of a text is meant: the one reading of a `Position`, for every verb.

    3, -2      a token, by its number: special tokens counted, negative from the end
    "word"     a word or phrase; or a token as the tokenizer writes it ("##ing"); "[MASK]" is any mask
    (4, 7)     the characters 4 to 6 of the text as its author wrote it

A word is whole where words are set apart by spaces, and stands anywhere where they are not (residues, atoms); a letter
of a script without spaces (ideographs, kana, Thai) is a word of its own. An accent is never parted from its letter, nor
the signs of one emoji from each other. Where a word does not stand, a token written like it is meant.

A position is asked in one of two roles:

- `one_place`: exactly one is wanted (`positions=` of joints, the keys of an edit's changes, `score["word"]`). A word
  that stands twice is refused, with the choices spelt out.
- `all_places`: a set is meant (`free=`, `keep=`). A word means every occurrence of it.

Knows text, tokens and where they stand. Refuses to know models, and to guess between two readings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Bools, Ints
from besag.errors import BesagError, nearest, quoted
from besag.places.reading import MASK, fixed_ids
from besag.vocabulary import Encoded, Vocabulary

Position: TypeAlias = int | str | tuple[int, int]

HOW = "give a token's index, a word or characters (start, end)"
JOINER = "\u200d"  # makes one emoji of several
SKINS = range(0x1F3FB, 0x1F400)
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")  # how the names of their letters begin


class Stretch(NamedTuple):
    """A place that was found: characters of the text as its author wrote it, and the tokens there."""

    start: int
    end: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)
class TokenisedText:
    """A text as its author wrote it, and where its tokens stand in it."""

    text: str
    tokens: Sequence[str]  # (L,) as the tokenizer writes them
    offsets: Ints  # (L, 2) characters of `text`
    added: Bools  # (L,) around the text, not in it
    special: Bools  # (L,) cannot be named: added, or written in the text
    spaced: bool  # are words set apart by spaces?
    masks: tuple[str, ...] = (MASK,)  # how one may be written
    numbered: bool = True  # may tokens be named by their numbers?

    @classmethod
    def of(cls, vocabulary: Vocabulary, text: str, encoded: Encoded) -> TokenisedText:
        """What `read` gave for a text; a mask may be written longer there than its author wrote it."""
        mask = vocabulary.mask_token or MASK
        offsets = encoded.offsets
        if mask != MASK and MASK in text:
            longer = len(mask) - len(MASK)
            starts = np.array([match.start() for match in re.finditer(re.escape(MASK), text)])
            ends = starts + len(MASK) + longer * np.arange(1, len(starts) + 1)  # in the text as encoded
            offsets = offsets - longer * np.searchsorted(ends, offsets, side="right")
        special = encoded.special | np.isin(encoded.ids, [*fixed_ids(vocabulary)])
        written = tuple(dict.fromkeys([MASK, mask]))
        return cls(text, encoded.tokens, offsets, encoded.special, special, vocabulary.spaced, written)

    def tokens_in(self, start: int, end: int) -> tuple[int, ...]:
        """The tokens that share a character with a span; one of no character (a lone "▁") belongs where it stands."""
        first, last = self.offsets.T
        stands = (first == last) & (first >= start) & ((first < end) | (end == len(self.text)))
        inside = ((first < end) & (last > start) & (first < last)) | stands
        return tuple(np.flatnonzero(inside & ~self.added).tolist())

    def visible(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """Those that cover a character."""
        return tuple(token for token in tokens if self.offsets[token, 0] < self.offsets[token, 1])

    def numbers(self) -> str:
        """The tokens of the text with their indices, a long text not whole."""
        inside = np.flatnonzero(~self.special).tolist()
        shown = inside if len(inside) <= 12 else [*inside[:8], None, *inside[-3:]]
        return ", ".join("…" if index is None else f"{index} {self.tokens[index].strip()}" for index in shown)


def one_place(where: TokenisedText, position: Position) -> Stretch:
    """The one place that a position names: a word that stands several times is refused."""
    found = _found(where, position)
    if not found:
        raise BesagError(_missing(where, position))
    if len(found) > 1:
        places = [_choice(where, stretch) for stretch in found]
        shown = places if len(places) <= 12 else [*places[:11], "…", places[-1]]
        by = "its index or its characters" if where.numbered else "its characters"
        raise BesagError(
            f"{position!r} stands {len(found)} times in {quoted(where.text)}: {', '.join(shown)}. Name one by {by}."
        )
    return _allowed(where, found)[0]


def all_places(
    where: TokenisedText, positions: Iterable[Position], *, name: str = "positions", missing: bool = False
) -> list[Stretch]:
    """All places that positions name: a word means every occurrence of it.

    `name` is what the user calls the positions. `missing` lets those pass that the text does not have, for positions
    that are named once for many texts.
    """
    stretches = []
    for position in position_list(name, positions):
        try:
            found = _found(where, position)
        except _Beyond:
            if not missing:
                raise
            found = []
        if not found and not missing:
            raise BesagError(_missing(where, position))
        stretches += _allowed(where, found)
    return stretches


def tokens_of(stretches: Iterable[Stretch]) -> set[int]:
    return {token for stretch in stretches for token in stretch.tokens}


def position_list(name: str, positions: object) -> list[Position]:
    """Positions as somebody gives them, if they are a list and each can be one in some text."""
    if isinstance(positions, str | int | np.integer):  # a text is a sequence too: of its letters
        raise BesagError(f"{name}={positions!r}: name places in a list, as [{positions!r}].")
    if not isinstance(positions, Iterable):
        raise BesagError(f"{name}={positions!r}: name places in a list of token indices, words or (start, end) spans.")
    return [_checked(position) for position in positions]


def _checked(position: object) -> Position:
    if isinstance(position, str) and position.strip():
        return position
    if isinstance(position, int | np.integer) and not isinstance(position, bool):
        return int(position)
    if isinstance(position, tuple | list | np.ndarray) and len(position) == 2:
        start, end = position
        if all(isinstance(at, int | np.integer) and not isinstance(at, bool) for at in (start, end)):
            return int(start), int(end)
    raise BesagError(f"{position!r} is no position: {HOW}.")


class _Beyond(BesagError):
    """A number or characters that this text does not have."""


def _found(where: TokenisedText, position: Position) -> list[Stretch]:
    """Every place that a position may mean, in the order of the text."""
    position = _checked(position)
    if isinstance(position, str):
        return _words(where, position) or _written_so(where, position)
    if isinstance(position, tuple):
        start, end = position
        if not 0 <= start < end <= len(where.text):
            raise _Beyond(
                f"{start}:{end} is no span of {quoted(where.text)}: characters are start:end, with 0 <= start < end <= "
                f"{len(where.text)}."
            )
        tokens = where.tokens_in(start, end)
        if not tokens:
            raise _Beyond(f"no token stands at {start}:{end} of {quoted(where.text)}, {where.text[start:end]!r}.")
        return [Stretch(start, end, tokens)]
    length = len(where.tokens)
    if not -length <= position < length:
        word = f" The word is {str(position)!r}, in a command word:{position}." if _spans(where, str(position)) else ""
        raise _Beyond(
            f"there is no token {position} in {quoted(where.text)}, which has {length}: {where.numbers()}.{word}"
        )
    return [_token(where, position % length)]


def _words(where: TokenisedText, word: str) -> list[Stretch]:
    found = [Stretch(start, end, where.tokens_in(start, end)) for start, end in _spans(where, word)]
    if word in where.masks:  # a mask alone: a lone space before it is text
        found = [stretch._replace(tokens=where.visible(stretch.tokens)) for stretch in found]
    return [stretch for stretch in found if stretch.tokens]


def _spans(where: TokenisedText, word: str) -> list[tuple[int, int]]:
    """Where a word or phrase stands, in characters: overlaps too, and a mask however it is written."""
    mask = "|".join(map(re.escape, where.masks))
    letters = f"(?:{mask})".join(map(re.escape, re.split(mask, word)))
    spans = (match.span(1) for match in re.finditer(f"(?=({letters}))", where.text))
    return [(start, end) for start, end in spans if not any(_joined(where, at) for at in (start, end))]


def _written_so(where: TokenisedText, word: str) -> list[Stretch]:
    """The tokens that the tokenizer writes like this."""
    alike = [index for index, token in enumerate(where.tokens) if token == word and not where.added[index]]
    return [_token(where, index) for index in alike]


def _token(where: TokenisedText, index: int) -> Stretch:
    start, end = where.offsets[index].tolist()
    return Stretch(start, end, (index,))


def _joined(where: TokenisedText, at: int) -> bool:
    """Do the letters before and after a place belong together?"""
    if not 0 < at < len(where.text):
        return False
    left, right = where.text[at - 1], where.text[at]
    if unicodedata.category(right).startswith("M") or JOINER in (left, right) or ord(right) in SKINS:
        return True
    return where.spaced and _within_word(left) and _within_word(right)


@cache
def _within_word(letter: str) -> bool:
    """May a word go on before and after it?"""
    wordly = letter.isalnum() or letter == "_" or unicodedata.category(letter).startswith("M")
    return wordly and not unicodedata.name(letter, "").startswith(UNSPACED)


def _allowed(where: TokenisedText, found: list[Stretch]) -> list[Stretch]:
    for stretch in found:
        if where.special[list(stretch.tokens)].all():
            token = stretch.tokens[0]
            raise BesagError(
                f"token {token} of {quoted(where.text)} is {where.tokens[token]!r}, a special token: only tokens of "
                f"the text can be named ({where.numbers()})."
            )
    return found


def _choice(where: TokenisedText, stretch: Stretch) -> str:
    """One of several places: "token 2 (4:7)", by characters alone where tokens have no numbers."""
    characters = f"{stretch.start}:{stretch.end}"
    if not where.numbered:
        return characters
    tokens = ", ".join(map(str, stretch.tokens))
    return f"token{'s' if len(stretch.tokens) > 1 else ''} {tokens} ({characters})"


def _missing(where: TokenisedText, position: Position) -> str:
    assert isinstance(position, str)  # a number or characters are found or refused
    said = f"{position!r} does not stand in {quoted(where.text)}"
    spans = _spans(where, position)
    if spans:
        return f"{said} as a token: none stands at {spans[0][0]}:{spans[0][1]}."
    start = where.text.find(position)
    if start >= 0:
        return f"{said} as a whole word or a token: name its characters, {start}:{start + len(position)}."
    words = {where.text[start:end] for start, end in where.offsets.tolist()} | {*where.text.split()}
    return f"{said}.{nearest(position, words - {''})}"
