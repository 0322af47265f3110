"""A text with free places, as what chains write on, and the way back to text.

Free are the masks of a text, or the places that are named, or all but those that are to be kept; n places from nothing
are a text of n masks. What stands around the free places is written back as its author wrote it. Knows canvases and no
kernel; which places a name means, `besag.places` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from besag.checks import MOST_LENGTH, whole_number
from besag.conditionals.contract import Conditionals
from besag.errors import BesagError, TooLong, nearest, quoted
from besag.joints.candidates import outcome_ids
from besag.places.filling import filled
from besag.places.places import find
from besag.places.positions import Position, TokenisedText, all_places, tokens_of
from besag.places.reading import MASK, masks, read, text_places
from besag.samplers.kernel import Canvas
from besag.vocabulary import Encoded, Vocabulary


@dataclass(frozen=True, eq=False)
class Sheet:
    vocabulary: Vocabulary
    encoded: Encoded
    positions: tuple[int, ...]  # of the free places in `encoded.ids`
    ids: np.ndarray  # (L,) as shown to the model: the whole text, or a window of it
    at: tuple[int, ...]  # where the free places stand in `ids`

    def canvas(self, conditionals: Conditionals, chains: int, allowed: Tensor | None) -> Canvas:
        ids = torch.from_numpy(self.ids).repeat(chains, 1).to(conditionals.device)
        free = torch.zeros_like(ids, dtype=torch.bool)
        free[:, list(self.at)] = True
        assert self.vocabulary.mask_id is not None
        return Canvas(ids, free, self.vocabulary.mask_id, allowed)

    def write(self, ids: np.ndarray) -> str:
        """The text with what stands at the free places of ids (L,); a place still hidden is written as a mask."""
        return filled(self.vocabulary, self.encoded, self.positions, ids[list(self.at)].tolist())


def template(
    conditionals: Conditionals,
    text: str,
    *,
    free: Literal["all"] | Sequence[Position] | None = None,
    keep: Sequence[Position] = (),
    long: bool = False,
) -> Sheet:
    """The masks of a text, or the places that `free` names ("all": every token), but for those that `keep` names.

    `long` allows a text that is longer than the model.
    """
    vocabulary, limit = conditionals.vocabulary, conditionals.max_length
    if isinstance(free, str) and free != "all":
        raise BesagError(f"free={free!r}: name places in a list, or 'all' of them.{nearest(free, ['all'])}")
    if free is None and MASK not in text and (vocabulary.mask_token or MASK) not in text:
        raise BesagError(
            f"{quoted(text)} has no mask, so nothing in it may change: write {MASK} where tokens are to be drawn, name "
            "free places (free=['word', …], --free), or free all of them (free='all', --free-all)."
        )
    encoded = read(vocabulary, text)
    where = TokenisedText.of(vocabulary, text, encoded)
    places = text_places(vocabulary, encoded)
    if not places:
        raise BesagError(f"{quoted(text)} has no tokens: give a text, or a length to sample from nothing.")
    if free is None:
        places = [*find(vocabulary, text, needs_context=False).positions]
    elif free != "all":
        named = tokens_of(all_places(where, free, name="free"))
        if not named:
            raise BesagError("free is empty: name places, 'all' of them, or leave it out for the masks of the text.")
        places = [place for place in places if place in named]
    kept = tokens_of(all_places(where, keep, name="keep"))
    left = [place for place in places if place not in kept]
    if not left:
        raise BesagError(f"everything that is free in {quoted(text)} is to be kept: {list(keep)}.")
    if limit is not None and len(encoded.ids) > limit and not long:
        raise TooLong(
            f"{quoted(text)} has {len(encoded.ids)} tokens, and {conditionals.name!r} sees {limit}: sample a part of "
            "it, or use the kernel 'semi_ar', which moves a window over long text."
        )
    found = find(vocabulary, text, left, needs_context=False)  # what is unknown around them, a chain says
    return Sheet(vocabulary, found.encoded, found.positions, found.ids, found.at)


def blank(conditionals: Conditionals, length: int, *, end: str = "", long: bool = False) -> Sheet:
    """n free places and nothing else; `end` is text that closes every sample, such as a full stop."""
    length = whole_number(length, "length", right="give the number of tokens to draw, at least 1.", most=MOST_LENGTH)
    sheet = template(conditionals, masks(conditionals.vocabulary, length) + end, long=long)
    if len(sheet.at) != length:
        raise BesagError(f"{conditionals.name!r} reads {length} masks as {len(sheet.at)}: write a text with masks.")
    return sheet


def allowed_tokens(conditionals: Conditionals, outcomes: Literal["text", "all"] = "text") -> Tensor | None:
    """(V,) bool: the tokens that may be drawn: no special ones unless `outcomes` is "all", and never the mask.

    None where that is all of them.
    """
    allowed = torch.zeros(conditionals.width, dtype=torch.bool)
    allowed[torch.from_numpy(outcome_ids(conditionals, outcomes))] = True
    mask = conditionals.vocabulary.mask_id
    if mask is not None and mask < conditionals.width:
        allowed[mask] = False  # a place that draws it would be hidden again, and a decoder never done
    return None if bool(allowed.all()) else allowed.to(conditionals.device)
