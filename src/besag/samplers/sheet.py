"""A text with free places, as what chains write on, and the way back to text.

Free are the masks of a text, or the places that are named, or all but those that are to be kept; n places from nothing
are a text of n masks. What stands around the free places is written back as its author wrote it. Knows tokenizers and
no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from besag.checks import whole_number
from besag.conditionals.contract import Conditionals
from besag.diagnostics.reading import encode
from besag.errors import BesagError, nearest
from besag.joints.candidates import outcome_ids
from besag.places.filling import filled
from besag.places.places import MASK, find
from besag.results.words import quoted
from besag.samplers.editing.rewrite import Spot, occurrences, tokens_at
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
    free: Literal["all"] | Sequence[Spot] | None = None,
    keep: Sequence[Spot] = (),
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
    if isinstance(keep, str):
        raise BesagError(f"keep={keep!r}: name places in a list, as [{keep!r}].")
    wanted = _all(vocabulary, text) if free == "all" else None if free is None else _named(vocabulary, text, free)
    places = find(vocabulary, text, wanted)
    if len(keep):
        kept = _named(vocabulary, text, keep)
        left = [position for position in places.positions if position not in kept]
        if not left:
            raise BesagError(f"everything that is free in {quoted(text)} is to be kept: {list(keep)}.")
        places = find(vocabulary, text, left)
    if limit is not None and len(places.ids) > limit and not long:
        raise BesagError(
            f"{quoted(text)} has {len(places.ids)} tokens, and {conditionals.name!r} sees {limit}: sample a part of "
            "it, or use the kernel 'semi_ar', which moves a window over long text."
        )
    return Sheet(vocabulary, places.encoded, places.positions, places.ids, places.at)


def _all(vocabulary: Vocabulary, text: str) -> list[int]:
    """The positions of a text that are not special tokens, masks among them."""
    special = vocabulary.special_ids - {vocabulary.mask_id, vocabulary.unknown_id}
    encoded = encode(vocabulary, text)
    found = [place for place in np.flatnonzero(~encoded.special).tolist() if int(encoded.ids[place]) not in special]
    if not found:
        raise BesagError(f"{quoted(text)} has no tokens: give a text, or a length to sample from nothing.")
    return found


def _named(vocabulary: Vocabulary, text: str, spots: Sequence[Spot]) -> list[int]:
    """Positions: of the tokens of words and phrases wherever they stand, token numbers, characters (start, end)."""
    encoded, found = encode(vocabulary, text), set[int]()
    for spot in spots:
        everywhere: list[Spot] = [*occurrences(text, spot, vocabulary.spaced)] if isinstance(spot, str) else [spot]
        for one in everywhere or [spot]:  # what stands nowhere is refused there
            found |= {*tokens_at(encoded, one)}
    return sorted(found)


def blank(conditionals: Conditionals, length: int, *, end: str = "", long: bool = False) -> Sheet:
    """n free places and nothing else; `end` is text that closes every sample, such as a full stop."""
    length = whole_number(length, "length", right="give the number of tokens to draw, at least 1.")
    sheet = template(conditionals, masks(conditionals.vocabulary, length) + end, long=long)
    if len(sheet.at) != length:
        raise BesagError(f"{conditionals.name!r} reads {length} masks as {len(sheet.at)}: write a text with masks.")
    return sheet


def masks(vocabulary: Vocabulary, length: int) -> str:
    return (" " if vocabulary.spaced else "").join([MASK] * length)


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
