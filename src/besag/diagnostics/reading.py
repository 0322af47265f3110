"""Which places of a text a diagnostic looks at: two that somebody names, its two masks, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from besag.conditionals.contract import Conditionals, require_both_sides
from besag.errors import BesagError, quoted
from besag.places.places import Places, find, of_tokens
from besag.places.positions import Position
from besag.places.reading import read, text_places, unknown_around
from besag.vocabulary import Encoded, Vocabulary


def askable(vocabulary: Vocabulary, encoded: Encoded) -> list[int]:
    """The positions of a text that can be hidden and asked, if a pair can be made of them."""
    places = text_places(vocabulary, encoded)
    if len(places) < 2:
        raise BesagError(f"{quoted(encoded.text)} has fewer than two tokens that can be asked, and a pair has two.")
    unknown_around(vocabulary, encoded)  # of the text as a whole: one pair alone may have nothing else around it
    return places


def pairs(conditionals: Conditionals, text: str, positions: Sequence[Position] | None) -> list[Places]:
    """The pair of places named, or the two masks of the text; if it has none, every two neighbours in it."""
    vocabulary, limit = conditionals.vocabulary, conditionals.max_length
    require_both_sides(conditionals)
    encoded = read(vocabulary, text)
    if positions is None and vocabulary.mask_id not in encoded.ids:
        near = [pair for pair in pairwise(askable(vocabulary, encoded)) if pair[1] - pair[0] == 1]
        return [of_tokens(vocabulary, encoded, pair, limit) for pair in near]
    where = find(vocabulary, text, positions, limit)
    if len(where.at) != 2:
        named = "one was" if len(where.at) == 1 else f"{len(where.at)} were"
        raise BesagError(f"a pair has two places, and {named} given in {quoted(text)}: {where.title}.")
    return [where]
