"""A text with some of it replaced: what was meant by "this word", and where every other token has gone.

Knows text and tokens. A word may be replaced by one of another number of tokens; what stands around it must be cut into
the same tokens as before, so that each of them is still known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Ints
from besag.conditionals.contract import Conditionals, require_both_sides
from besag.errors import BesagError, nearest
from besag.results.words import quoted
from besag.vocabulary import Encoded

Spot: TypeAlias = str | int | tuple[int, int]  # a word or phrase, a token, or characters start … end
Changes: TypeAlias = Mapping[Spot, str | None]  # what stands there now; None: hidden, and drawn anew


def encode(conditionals: Conditionals, text: str) -> Encoded:
    """A text as a masked model reads it, if it can and nothing in it is hidden."""
    vocabulary, limit = conditionals.vocabulary, conditionals.max_length
    require_both_sides(conditionals)
    [encoded] = vocabulary.encode([text])
    if vocabulary.mask_id in encoded.ids[encoded.places]:
        raise BesagError(f"{quoted(text)} holds a mask, and what is hidden cannot be inverted: fill it first")
    if limit is not None and len(encoded.ids) > limit:
        raise BesagError(f"{quoted(text)} has {len(encoded.ids)} tokens, and {conditionals.name!r} sees {limit}.")
    return encoded


def free_places(conditionals: Conditionals, encoded: Encoded, keep: Sequence[Spot]) -> Ints:
    """The places that are hidden and drawn: tokens of text, but for those to be kept."""
    special, spaced = np.isin(encoded.ids, [*conditionals.vocabulary.special_ids]), conditionals.vocabulary.spaced
    kept = [at for spot in keep for at in tokens_at(encoded, spot, spaced)]
    places = np.setdiff1d(encoded.places[~special[encoded.places]], kept)
    if not len(places):
        raise BesagError(f"no token of {quoted(encoded.text)} is free: all of it is kept")
    return np.asarray(places, np.int64)


def occurrences(text: str, phrase: str, spaced: bool = True) -> list[tuple[int, int]]:
    """Where a phrase stands, in characters: as whole words, or, where words are not spaced, anywhere."""
    if not phrase.strip():
        return []
    before = r"(?<!\w)" if spaced and phrase[:1].isalnum() else ""
    after = r"(?!\w)" if spaced and phrase[-1:].isalnum() else ""
    return [match.span(1) for match in re.finditer(f"(?={before}({re.escape(phrase)}){after})", text)]  # overlaps too


def span(encoded: Encoded, spot: Spot, spaced: bool = True) -> tuple[int, int]:
    """Where something stands, in characters."""
    text = encoded.text
    if isinstance(spot, str):
        found = occurrences(text, spot, spaced)
        if len(found) == 1:
            return found[0]
        if not found:
            raise BesagError(f"{spot!r} does not stand in {quoted(text)}.{nearest(spot, text.split())}")
        raise BesagError(f"{spot!r} stands {len(found)} times in {quoted(text)}: give characters, one of {found}")
    if isinstance(spot, int | np.integer) and not isinstance(spot, bool):
        if not 0 <= spot < len(encoded.ids) or encoded.special[spot]:
            raise BesagError(f"there is no token {spot} of text in {quoted(text)}: {encoded.places.tolist()} are")
        start, end = encoded.offsets[spot].tolist()
        return int(start), int(end)
    if isinstance(spot, tuple) and len(spot) == 2 and 0 <= spot[0] < spot[1] <= len(text):
        return spot
    raise BesagError(f"{spot!r} names nothing in {quoted(text)}: give a word, a token number or (start, end)")


def tokens_at(encoded: Encoded, spot: Spot, spaced: bool = True) -> list[int]:
    """The tokens that share a character with it; one of no character (a lone "▁") belongs to where it stands."""
    start, end = span(encoded, spot, spaced)
    first, last = encoded.offsets.T
    inside = ((first < end) & (last > start)) | ((first == last) & (first >= start) & (first < end))
    if not (inside & ~encoded.special).any():
        raise BesagError(f"no token stands at {spot!r} in {quoted(encoded.text)}")
    return [int(at) for at in np.flatnonzero(inside & ~encoded.special)]


class Rewrite(NamedTuple):
    """A text with some of it replaced, and where its other tokens have gone."""

    encoded: Encoded  # of the new text
    moved: Ints  # (L,) for each old token its place in the new text; −1 where it was replaced
    replaced: Ints  # old places
    hidden: Ints  # old places that are drawn anew
    asked: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, conditionals: Conditionals, own: Encoded, changes: Changes) -> Rewrite:
        spaced = conditionals.vocabulary.spaced
        found = ((span(own, spot, spaced), spot, new) for spot, new in changes.items())
        spans = sorted(found, key=lambda change: change[0])
        text, at, new_spans = "", 0, list[tuple[int, int]]()
        for (start, end), spot, new in spans:
            if start < at:
                raise BesagError(f"{spot!r} overlaps with another change of {quoted(own.text)}")
            if new is not None and (not isinstance(new, str) or not new.strip()):
                raise BesagError(f"{spot!r} becomes {new!r}: give new words, or None to hide it and draw it anew")
            text += own.text[at:start]
            if new is not None:
                new_spans.append((len(text), len(text) + len(new)))
            text, at = text + (own.text[start:end] if new is None else new), end
        encoded = encode(conditionals, text + own.text[at:])
        replaced = [at for _, spot, new in spans if new is not None for at in tokens_at(own, spot, spaced)]
        written = [at for written_at in new_spans for at in tokens_at(encoded, written_at)]
        rest = np.setdiff1d(np.arange(len(own.ids)), replaced)
        there = np.setdiff1d(np.arange(len(encoded.ids)), written)
        if not np.array_equal(own.ids[rest], encoded.ids[there]):
            raise BesagError(
                f"in {quoted(encoded.text)} the text around the change is cut into other tokens than before: replace "
                "whole words"
            )
        moved = np.full(len(own.ids), -1)
        moved[rest] = there
        hidden = [at for _, spot, new in spans if new is None for at in tokens_at(own, spot, spaced)]
        asked = tuple((own.text[start:end], new) for (start, end), _, new in spans)
        return cls(encoded, moved, np.array(replaced, np.int64), np.array(hidden, np.int64), asked)
