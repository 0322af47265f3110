"""Which two places of a text are studied: at random, next to each other, or at a given distance.

    random       two distinct places, every unordered pair alike, then a coin for which of them is a
    contiguous   a uniform among the places whose right neighbour can be studied too, b = a + 1
    distance d   a uniform among the places with a partner d tokens on, b = a + d

A place can be studied when the text's own token there is known and an ordinary one: special tokens cannot, whoever
wrote them, nor can the unknown token. What is drawn is a function of the seed and the text's number alone. Knows no
model beyond how many tokens it takes at a time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag import noise
from besag.errors import BesagError, nearest
from besag.noise import Study
from besag.results.status import Status
from besag.vocabulary import Encoded

SCHEMES = ("random", "contiguous", "distance")
DISTANCES = (1, 2, 4, 8)


class Scheme(NamedTuple):
    name: str  # one of SCHEMES
    distance: int = 0  # of "distance" only

    def __str__(self) -> str:
        return f"{self.name} {self.distance}" if self.distance else self.name


class Pair(NamedTuple):
    text: int  # its number, counted from 1
    scheme: Scheme
    a: int = -1  # positions among the text's tokens, special ones counted; -1 where there is no pair
    b: int = -1
    status: Status = Status.OK  # or why there is none: empty, mask, short, far


def schemes(names: Sequence[str], distances: Sequence[int] = DISTANCES) -> tuple[Scheme, ...]:
    """Schemes by name; "distance" stands for one scheme a distance."""
    found: list[Scheme] = []
    for name in [names] if isinstance(names, str) else names:
        if name not in SCHEMES:
            raise BesagError(f"pairs are drawn {', '.join(SCHEMES)}, not {name!r}.{nearest(name, SCHEMES)}")
        found += [Scheme(name, distance) for distance in distances] if name == "distance" else [Scheme(name)]
    if any(scheme.name == "distance" and scheme.distance < 1 for scheme in found):
        raise BesagError(f"distances are counted in tokens from 1 on, not {', '.join(map(str, distances))}")
    if not found or len(set(found)) < len(found):
        raise BesagError(f"name every kind of pairs once, not {', '.join(map(str, found)) or 'none'}")
    return tuple(found)


def sample_pairs(
    encoded: Encoded,
    number: int,
    kinds: Sequence[Scheme],
    *,
    per_text: int = 1,
    seed: int = 0,
    ordinary: NDArray[np.int64] | None = None,
    mask_id: int | None = None,
    max_length: int | None = None,
) -> list[Pair]:
    """`per_text` different pairs of each kind; where a text has fewer, the rest are there with a status that says so.

    `ordinary` are the ids of tokens that may be studied (None: any), `max_length` the most tokens the model takes.
    """
    eligible = ~encoded.special if ordinary is None else ~encoded.special & np.isin(encoded.ids, ordinary)  # (L,)
    within = sys.maxsize if max_length is None else max_length - int(encoded.special.sum())  # text tokens at a time
    status = Status.SHORT
    if encoded.special.all():
        status = Status.EMPTY if encoded.decodable else Status.UNDECODABLE
    elif mask_id is not None and bool((encoded.ids == mask_id).any()):
        status, eligible = Status.MASK, np.zeros_like(eligible)
    pairs: list[Pair] = []
    for kind in kinds:
        missing = Status.FAR if status == Status.SHORT and kind.distance >= within else status
        found = islice(_drawn(eligible, number, kind, seed, within), per_text)
        here = [Pair(number, kind, a, b) for a, b in found]
        pairs += here + [Pair(number, kind, status=missing)] * (per_text - len(here))
    return pairs


def _drawn(eligible: NDArray[np.bool_], number: int, kind: Scheme, seed: int, within: int) -> Iterator[tuple[int, int]]:
    """Pairs of one kind in random order, each once."""
    stream = SCHEMES.index(kind.name) + kind.distance
    if kind.name == "random":
        place = np.flatnonzero(eligible)
        for code in _shuffled(len(place) * (len(place) - 1) // 2, seed, number, stream):
            second = (1 + math.isqrt(1 + 8 * code)) // 2  # the pairs below this one number second·(second − 1)/2
            a, b = int(place[code - second * (second - 1) // 2]), int(place[second])
            if b - a < within:
                coin = noise.uniform(seed, Study.SIDE, number, stream, code)
                yield (a, b) if coin < 0.5 else (b, a)
        return
    distance = kind.distance or 1
    starts = np.flatnonzero(eligible[:-distance] & eligible[distance:]) if distance < within else np.empty(0, np.int64)
    for code in _shuffled(len(starts), seed, number, stream):
        yield int(starts[code]), int(starts[code]) + distance


def _shuffled(count: int, seed: int, number: int, stream: int) -> Iterator[int]:
    """0 … count − 1 in random order, one at a time: a shuffle that remembers only what it has moved."""
    moved: dict[int, int] = {}
    for index in range(count):
        chosen = index + int(noise.uniform(seed, Study.PAIR, number, stream, index) * (count - index))
        yield moved.get(chosen, chosen)
        moved[chosen] = moved.pop(index, index)
