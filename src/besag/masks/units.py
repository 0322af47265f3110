"""Taking units (tokens, words, spans) of each passage in the order of their turns, until its budget is spent.

Every law with a budget is this: what the units are, and whose turn comes first. Equal chances are turns drawn
uniformly; chances proportional to weights w, without replacement, are exponential races: turn = −log(U) / w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag import noise
from besag.arrays import Bools, Floats, Ints
from besag.masks.passages import Passages
from besag.noise import Training


def budget(passages: Passages, rate: Floats, seed: int, stream: int = Training.ROUNDING) -> Ints:
    """(R,) how many tokens of each passage to hide: rate × size, rounded up with the chance of its fraction.

    So the mean is exact wherever rate × size is at least 1. Below that, a passage with anything to hide hides one token
    all the same, unless its rate is 0.
    """
    size = passages.sizes
    wanted = np.clip(rate, 0.0, 1.0) * size
    low = np.floor(wanted)
    up = noise.uniform(seed, stream, passages.draw) < wanted - low
    count: Ints = np.where(wanted > 0, np.minimum(np.maximum(low + up, 1), size), 0).astype(np.int64)
    return count


def uniform_turns(passages: Passages, seed: int, stream: int = Training.TURNS) -> Floats:
    """(T,) one uniform number a token, a function of (seed, draw, place) alone."""
    return noise.uniform(seed, stream, passages.draw[passages.row], passages.place)


class Units(NamedTuple):
    """U units, made of the n tokens that are in any."""

    token: Ints  # (n,) the tokens, ascending
    member: Ints  # (n,) the unit of each
    first: Ints  # (U,) the first token of each unit
    size: Ints  # (U,) tokens of each unit


def gather(passages: Passages, unit: Ints) -> Units:
    """The units of all passages, numbered through; `unit` (T,) numbers those of each passage, −1: in none."""
    token = np.flatnonzero((unit >= 0) & passages.free)
    number = passages.row[token] * (int(unit.max(initial=0)) + 1) + unit[token]  # the passage is part of the name
    if (number[1:] >= number[:-1]).all():  # words and spans in the order of the text: no need to sort
        begins = np.append(True, number[1:] != number[:-1])[: len(number)]
        member = np.cumsum(begins) - 1
        first, size = np.flatnonzero(begins), np.bincount(member)
    else:
        _, first, member, size = np.unique(number, return_index=True, return_inverse=True, return_counts=True)
    return Units(token, member, token[first], size)


def in_turn(row: Ints, turn: Floats, stable: bool = True) -> Ints:
    """(U,) passage by passage, and within each by ascending turn; equal turns keep the order they have, if `stable`."""
    order = np.argsort(turn, kind="stable" if stable else "quicksort")
    narrow = np.uint16 if row.max(initial=0) < 1 << 16 else np.int64  # numpy sorts 16 bits by radix
    by_row: Ints = order[np.argsort(row[order].astype(narrow), kind="stable")]
    return by_row


def take(passages: Passages, unit: Ints, turn: Floats, limit: Ints) -> Bools:
    """(T,) the tokens of the units taken.

    `unit` (T,) numbers the units of each passage (any numbers; −1: never taken); `turn` (T,) is read at the first token
    of each unit; `limit` (R,) tokens. A unit that does not fit into what is left of the budget is passed over.
    """
    units = gather(passages, unit)
    row, size = passages.row[units.first], units.size  # (U,)
    taken = np.zeros(len(size), dtype=np.bool_)
    left = limit.astype(np.int64)
    waiting = in_turn(row, turn[units.first])
    while len(waiting):
        # `reach` grows within a passage, so what fits is what stands before the first unit that does not. That one goes
        # now, for it is larger than what is left, and so do all as large: a round for each size of unit at most.
        fits = _running(row[waiting], size[waiting]) <= left[row[waiting]]
        now = waiting[fits]
        taken[now] = True
        np.subtract.at(left, row[now], size[now])
        waiting = waiting[~fits]
        waiting = waiting[size[waiting] <= left[row[waiting]]]
    chosen = np.zeros(len(unit), dtype=np.bool_)
    chosen[units.token] = taken[units.member]
    return chosen


def take_tokens(passages: Passages, turn: Floats, limit: Ints) -> Bools:
    """(T,) the same where each free token is a unit of its own, for turns that are never equal (52 bits of noise)."""
    token = np.flatnonzero(passages.free)
    order = token[in_turn(passages.row[token], turn[token], stable=False)]  # twice as fast
    row = passages.row[order]
    chosen = np.zeros(len(turn), dtype=np.bool_)
    chosen[order[np.arange(len(order)) - np.searchsorted(row, np.arange(len(limit)))[row] < limit[row]]] = True
    return chosen


def _running(row: Ints, amount: Ints) -> Ints:
    """(U,) the sum of the amounts so far in each passage; row ascends."""
    total = np.cumsum(amount)
    starts = np.searchsorted(row, np.arange(int(row[-1]) + 1))  # (rows,) where each passage begins
    before = np.append(0, total)[starts]
    running: Ints = total - before[row]
    return running
