"""Windows over text that is longer than a model: which stretch of it is shown for which places.

The special tokens at both ends stand around every window. Knows lengths and places, and no question.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from besag.arrays import Ints
from besag.errors import BesagError, TooLong
from besag.vocabulary import Encoded


def ends(encoded: Encoded) -> tuple[int, int]:
    """How many special tokens stand before and after the text."""
    inside = np.flatnonzero(~encoded.special)
    return int(inside[0]), len(encoded.ids) - 1 - int(inside[-1])


def window_around(encoded: Encoded, places: Sequence[int], limit: int | None) -> tuple[Ints, int]:
    """The ids that a model of `limit` positions is shown for some places together, in the middle of them.

    And how far the places move to the left by it.
    """
    ids = np.asarray(encoded.ids, np.int64)
    if limit is None or len(ids) <= limit:
        return ids, 0
    lead, trail = ends(encoded)
    room, body = limit - lead - trail, len(ids) - lead - trail
    first, last = min(places) - lead, max(places) - lead
    if last - first + 1 > room:
        raise TooLong(
            f"the tokens {min(places)} and {max(places)} stand {last - first} apart, and the model sees {max(room, 0)} "
            "tokens of text at a time: ask for places that are nearer to each other."
        )
    start = min(max((first + last + 1) // 2 - room // 2, 0), body - room)
    stretch = ids[lead + start : lead + start + room]
    return np.concatenate([ids[:lead], stretch, ids[len(ids) - trail :]]), start


def windows(length: int, capacity: int, place: Ints, centred: bool) -> Ints:  # (M,)
    """Start of the window of `capacity` text tokens, out of `length`, in which each place is answered.

    Centred: the window around the place itself, pushed inside the text. Otherwise windows start every half capacity,
    and at the last start, so that many places share one; a place takes the window that maximises the smaller of its
    left and right contexts, where a side that reaches the end of the text counts as full. Ties go to the left.
    """
    if capacity < 1:
        raise BesagError(f"a window of {capacity} tokens has no room for text: it needs at least 1.")
    place = np.asarray(place, dtype=np.int64)
    last = max(length - capacity, 0)
    if centred or last == 0:
        centre: Ints = np.clip(place - capacity // 2, 0, last)
        return centre
    stride = max(capacity // 2, 1)
    start = np.clip((place[:, None] // stride - np.array([2, 1, 0])) * stride, 0, last)
    start = np.append(start, np.full((len(place), 1), last), axis=1)  # (M, 4): no other window can hold the place
    left = np.where(start == 0, capacity, place[:, None] - start)
    right = np.where(start == last, capacity, start + capacity - 1 - place[:, None])
    context = np.where((left >= 0) & (right >= 0), np.minimum(left, right), -1)
    best: Ints = np.take_along_axis(start, context.argmax(axis=1)[:, None], axis=1)[:, 0]
    return best
