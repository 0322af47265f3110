"""A text as a model reads it: masks written in any model's way, and which of its tokens can be asked.

Knows the mask and the special tokens of a vocabulary. Refuses to know which places somebody means.
"""

from __future__ import annotations

from besag.errors import BesagError, quoted
from besag.vocabulary import Encoded, Vocabulary

MASK = "[MASK]"  # how a mask may be written for any model


def read(vocabulary: Vocabulary, text: str, lenient: bool = False) -> Encoded:
    """The text as ids; "[MASK]" is a mask for any model. `lenient`, as `Vocabulary.encode`."""
    if not isinstance(text, str):
        raise BesagError(f"expected a text, got {quoted(text)} of type {type(text).__name__}.")
    [encoded] = vocabulary.encode([text.replace(MASK, vocabulary.mask_token or MASK)], lenient=lenient)
    return encoded


def masks(vocabulary: Vocabulary, length: int) -> str:
    """A text of so many masks."""
    return (" " if vocabulary.spaced else "").join([MASK] * length)


def fixed_ids(vocabulary: Vocabulary) -> frozenset[int]:
    """The special tokens that are never asked, also where somebody writes them: all but the mask and the unknown."""
    return vocabulary.special_ids - {vocabulary.mask_id, vocabulary.unknown_id}


def text_places(vocabulary: Vocabulary, encoded: Encoded) -> list[int]:
    """The positions that can be hidden and asked: all of the text, masks among them, but special tokens in it."""
    fixed = fixed_ids(vocabulary)
    return [place for place in encoded.places.tolist() if int(encoded.ids[place]) not in fixed]
