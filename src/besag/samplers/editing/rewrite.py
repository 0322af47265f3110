"""A text with some of it replaced, and where every other token has gone.

Knows text and tokens. A word may be replaced by one of another number of tokens; what stands around it must be cut into
the same tokens as before, so that each of them is still known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Ints
from besag.conditionals.contract import Conditionals, require_both_sides
from besag.errors import BesagError, quoted
from besag.places.positions import Position, TokenisedText, all_places, one_place, tokens_of
from besag.places.reading import read
from besag.vocabulary import Encoded

Changes: TypeAlias = Mapping[Position, str | None]  # what stands there now; None: hidden, and drawn anew


def encode(conditionals: Conditionals, text: str) -> Encoded:
    """A text as a masked model reads it, if it can and nothing in it is hidden."""
    vocabulary, limit = conditionals.vocabulary, conditionals.max_length
    require_both_sides(conditionals)
    encoded = read(vocabulary, text)
    if vocabulary.mask_id in encoded.ids[encoded.places]:
        raise BesagError(f"{quoted(text)} holds a mask, and what is hidden cannot be inverted: fill it first")
    if limit is not None and len(encoded.ids) > limit:
        raise BesagError(f"{quoted(text)} has {len(encoded.ids)} tokens, and {conditionals.name!r} sees {limit}.")
    return encoded


def free_places(conditionals: Conditionals, encoded: Encoded, keep: Sequence[Position]) -> Ints:
    """The places that are hidden and drawn: tokens of text, but for those to be kept."""
    special = np.isin(encoded.ids, [*conditionals.vocabulary.special_ids])
    where = TokenisedText.of(conditionals.vocabulary, encoded.text, encoded)
    kept = sorted(tokens_of(all_places(where, keep, name="keep")))
    places = np.setdiff1d(encoded.places[~special[encoded.places]], kept)
    if not len(places):
        raise BesagError(f"no token of {quoted(encoded.text)} is free: all of it is kept")
    return np.asarray(places, np.int64)


class Rewrite(NamedTuple):
    """A text with some of it replaced, and where its other tokens have gone."""

    encoded: Encoded  # of the new text
    moved: Ints  # (L,) for each old token its place in the new text; −1 where it was replaced
    replaced: Ints  # old places
    hidden: Ints  # old places that are drawn anew
    asked: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, conditionals: Conditionals, own: Encoded, changes: Changes) -> Rewrite:
        where = TokenisedText.of(conditionals.vocabulary, own.text, own)
        found = ((one_place(where, position), position, new) for position, new in changes.items())
        spans = sorted(found, key=lambda change: change[0])
        text, at, new_spans = "", 0, list[tuple[int, int]]()
        for (start, end, _), position, new in spans:
            if start < at:
                raise BesagError(f"{position!r} overlaps with another change of {quoted(own.text)}")
            if new is not None and (not isinstance(new, str) or not new.strip()):
                raise BesagError(f"{position!r} becomes {new!r}: give new words, or None to hide it and draw it anew")
            if new is not None and start == end:
                raise BesagError(f"{position!r} covers no character of {quoted(own.text)}: name the word it belongs to")
            text += own.text[at:start]
            if new is not None:
                new_spans.append((len(text), len(text) + len(new)))
            text, at = text + (own.text[start:end] if new is None else new), end
        encoded = encode(conditionals, text + own.text[at:])
        again = TokenisedText.of(conditionals.vocabulary, encoded.text, encoded)
        replaced = [at for (start, end, _), _, new in spans if new is not None for at in where.tokens_in(start, end)]
        written = [at for start, end in new_spans for at in again.tokens_in(start, end)]
        rest = np.setdiff1d(np.arange(len(own.ids)), replaced)
        there = np.setdiff1d(np.arange(len(encoded.ids)), written)
        if not np.array_equal(own.ids[rest], encoded.ids[there]):
            raise BesagError(
                f"in {quoted(encoded.text)} the text around the change is cut into other tokens than before: replace "
                "whole words"
            )
        moved = np.full(len(own.ids), -1)
        moved[rest] = there
        hidden = [at for stretch, _, new in spans if new is None for at in stretch.tokens]
        asked = tuple((own.text[start:end], new) for (start, end, _), _, new in spans)
        return cls(encoded, moved, np.array(replaced, np.int64), np.array(hidden, np.int64), asked)
