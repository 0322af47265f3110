"""Documents cut into passages: (start, length) of runs of tokens, each within one document, none longer than `room`.

Pure functions of bounds; vectorised, so that millions of sentences take a second. Knows no special tokens and no
batches; noise comes in as an argument.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Floats, Ints
from besag.training.data.tokens import SENTENCE

SHORTEST = 8  # tokens, special ones counted: the shortest target of a segment


def pieces(marks: NDArray[np.uint8], documents: Ints, room: int) -> Ints:  # (U + 1,)
    """Bounds of all sentences; one that is too long is cut into equal parts. They tile the text."""
    begins = [np.flatnonzero(marks[low : low + (1 << 24)] & SENTENCE) + low for low in range(0, len(marks), 1 << 24)]
    bounds = np.concatenate([*begins, documents[-1:]])
    return np.append(_even(bounds, room), bounds[-1])


def even(documents: Ints, room: int) -> tuple[Ints, Ints]:
    """Each document whole, or in as few equal parts as fit."""
    start = _even(documents, room)
    return start, np.diff(np.append(start, documents[-1]))


def windows(documents: Ints, room: int) -> tuple[Ints, Ints]:
    """Windows of exactly `room` tokens (fewer only in a shorter document); the last is moved back to end with it."""
    size = np.diff(documents)
    count = -(-size // room)
    owner, number = _numbered(count)
    start = documents[owner] + np.minimum(number * room, np.maximum(size - room, 0)[owner])
    return start, np.minimum(size, room)[owner]


def segments(bounds: Ints, documents: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Runs of whole pieces: from piece s as many as fit into target[s] tokens, at least one, to the end of a document.

    bounds (U + 1,) from `pieces`, target (U,). The next segment begins where the last ended, so that all tile the text:
    the orbit of 0 under s → next(s), found by doubling the step.
    """
    count = len(bounds) - 1
    border = np.searchsorted(bounds, documents)  # (D + 1,) the first piece of each document
    end = np.repeat(border[1:], np.diff(border))  # (U,) the first piece of the next document
    step = np.searchsorted(bounds, bounds[:-1] + target, side="right") - 1
    step = np.append(np.clip(step, np.arange(1, count + 1), end), count)  # (U + 1,) the end stays where it is
    reached = np.zeros(count + 1, np.bool_)
    reached[border] = True
    known = 0
    while known < (now := int(np.count_nonzero(reached))):
        known = now
        reached[step[reached]] = True
        step = step[step]
    start = bounds[reached]
    return start[:-1], np.diff(start)


def targets(noise: Floats, longest: int, special: int) -> Ints:
    """Lengths of segments, without special tokens: log-uniform between `SHORTEST` and `longest` with them."""
    low = min(SHORTEST, longest)
    drawn = np.floor(low * ((longest + 1) / low) ** noise).astype(np.int64)
    length: Ints = np.maximum(np.minimum(drawn, longest) - special, 1)
    return length


def _numbered(count: Ints) -> tuple[Ints, Ints]:
    """0, 0, 0, 1, 1, … and 0, 1, 2, 0, 1, … for counts 3, 2, …"""
    owner = np.repeat(np.arange(len(count)), count)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)


def _even(bounds: Ints, room: int) -> Ints:
    """Where the equal parts begin of what lies between the bounds, none of them longer than `room`."""
    size = np.diff(bounds)
    count = -(-size // room)
    if not len(count) or count.max() <= 1:
        return bounds[:-1][size > 0]
    owner, number = _numbered(count)
    start: Ints = bounds[owner] + number * size[owner] // count[owner]
    return start
