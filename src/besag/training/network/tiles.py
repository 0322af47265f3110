"""Whole sequences put together into tiles of at most 128 tokens, so that one program of `short_attention` is kept busy.

Which sequence stands where in an unpadded batch is free, so they are ordered for it: best fit, longest first. A tile is
then some 99 % full, where one sequence a tile would leave two thirds of it empty.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Ints

TILE = 128


def best_order(lengths: Ints) -> Ints:
    """(R,) the order of sequences of these lengths (at most 128) in which tiles are fullest."""
    tiles: list[list[int]] = []
    room: list[list[int]] = [[] for _ in range(TILE + 1)]  # tiles by what is left in them
    has_room = 0  # bit r: is there a tile with r left?
    for sequence in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[sequence])
        fitting = has_room >> length
        if fitting:
            left = length + (fitting & -fitting).bit_length() - 1  # the least room that is enough
            tile = room[left].pop()
            if not room[left]:
                has_room ^= 1 << left
        else:
            left, tile = TILE, len(tiles)
            tiles.append([])
        tiles[tile].append(sequence)
        rest = left - length
        if rest:
            room[rest].append(tile)
            has_room |= 1 << rest
    return np.array([sequence for tile in tiles for sequence in tile], dtype=np.int64)


def cut(lengths: Ints) -> Ints:
    """(G + 1,) the first token of each tile, and the end of the last, for sequences that stand in this order.

    A tile takes the next sequence while it fits. In `best_order` these are the tiles that were packed: each was begun
    with a sequence that had no room in any before it.
    """
    bounds, filled = [0], 0
    for length in lengths.tolist():
        if filled + length > TILE:
            bounds.append(bounds[-1] + filled)
            filled = 0
        filled += length
    return np.array([*bounds, bounds[-1] + filled], dtype=np.int64)
