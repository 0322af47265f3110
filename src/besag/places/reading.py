"""A text as a model reads it: masks written in any model's way, and which of its tokens can be asked.

Knows the mask and the special tokens of a vocabulary. Refuses to know which places somebody means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from besag.checks import whole_number
from besag.errors import BesagError, quoted
from besag.results.words import counted
from besag.vocabulary import Encoded, Vocabulary

MOST_MASKS = 2**20  # of a text from nothing
MASK = "[MASK]"  # how a mask may be written for any model


def read(vocabulary: Vocabulary, text: str, lenient: bool = False) -> Encoded:
    """The text as ids; "[MASK]" is a mask for any model. `lenient`, as `Vocabulary.encode`."""
    if not isinstance(text, str):
        raise BesagError(f"expected a text, got {quoted(text)} of type {type(text).__name__}.")
    [encoded] = vocabulary.encode([text.replace(MASK, vocabulary.mask_token or MASK)], lenient=lenient)
    return encoded


def masks(vocabulary: Vocabulary, length: int) -> str:
    """A text of so many masks."""
    length = whole_number(length, "length", most=MOST_MASKS)
    return (" " if vocabulary.spaced else "").join([MASK] * length)


def fixed_ids(vocabulary: Vocabulary) -> frozenset[int]:
    """The special tokens that are never asked, also where somebody writes them: all but the mask and the unknown."""
    return vocabulary.special_ids - {vocabulary.mask_id, vocabulary.unknown_id}


def unknown_around(vocabulary: Vocabulary, encoded: Encoded, places: Sequence[int] = ()) -> int:
    """How many tokens of a text, other than these places, are unknown to the model.

    Where all are that could say anything, an answer would not depend on the text: it is refused. Masks, special tokens
    and tokens of no character say nothing.
    """
    content = ~np.isin(encoded.ids, [*vocabulary.special_ids - {vocabulary.unknown_id}]) & ~encoded.special
    content &= encoded.offsets[:, 0] < encoded.offsets[:, 1]
    content[list(places)] = False
    unknown = int((content & (encoded.ids == vocabulary.unknown_id)).sum())
    if unknown and unknown == content.sum():
        raise BesagError(
            f"the model knows nothing of {quoted(encoded.text)}: the whole context, {counted(unknown, 'token')}, is "
            "unknown to its tokenizer, so that any other text would be answered alike. Write it in the model's "
            "language and script, or take a model that knows it."
        )
    return unknown


def text_places(vocabulary: Vocabulary, encoded: Encoded) -> list[int]:
    """The positions that can be hidden and asked: all of the text, masks among them, but special tokens in it."""
    fixed = fixed_ids(vocabulary)
    return [place for place in encoded.places.tolist() if int(encoded.ids[place]) not in fixed]
