"""Learning a unigram vocabulary: pieces v with probabilities p(v), from words and how often each occurs.

A word w is cut into pieces at random, P(w) = Σ_cuts Π p(v). Starting from the frequent substrings of all words,

    E   c(v) = Σ_w count(w) · E[how often v is in the cut of w | w]       (forward and backward sums over each word)
    M   p(v) = c(v) / Σ c,  pieces with c(v) < ½ dropped (or, where too few are left, counted as ½)
    prune   drop the pieces whose loss c(v) · (log p(v) − log p(best cut of v without v)) is smallest

are repeated, a quarter dropped at a time, until exactly as many pieces are left as wanted. Letters are never dropped.
(Kudo 2018, "Subword Regularization".)

Vectorised over all words at once, in a fixed order: the same words give the same pieces and the same numbers. Knows
strings and counts; refuses to know text, and how a tokenizer writes words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LONGEST_PIECE = 16  # letters
LONGEST_WORD = 48  # letters; longer ones teach nothing
TYPES = 250_000  # distinct words learnt from, the most frequent ones
SEEDS = 150_000  # pieces to begin with, or six times as many as are wanted
KEPT = 0.75  # share of the pieces that a round of pruning leaves
ROUNDS = 2  # of EM between prunings
LEAST = 0.5  # expected occurrences: fewer, and a piece is dropped
BASE = np.uint64(0x9E3779B97F4A7C15)  # of the polynomial hash of a substring, modulo 2^64

Ints = NDArray[np.int32] | NDArray[np.int64]
Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]


def learn(words: Mapping[str, int], room: int) -> dict[str, float]:
    """At most `room` pieces with log p, the likeliest first; fewer where the words have no more substrings.

    Every letter of the words is a piece, so `room` must hold them.
    """
    letters = sorted({letter for word in words for letter in word})
    usual = [one for one in sorted(words.items(), key=lambda one: (-one[1], one[0])) if len(one[0]) <= LONGEST_WORD]
    strings = [word for word, _ in usual[:TYPES]]
    counts = np.array([count for _, count in usual[:TYPES]], np.float64)
    pieces, weight = _seeds(strings, counts, letters, max(SEEDS, 6 * room))
    p, edges = weight / weight.sum(), _edges(strings, pieces)
    while True:
        for _ in range(ROUNDS):
            expected = _expected(edges, strings, counts, pieces, p)
            expected[: len(letters)] = np.maximum(expected[: len(letters)], LEAST)
            alive = expected >= LEAST
            alive[np.argsort(-expected, kind="stable")[:room]] = True  # but as many as are wanted stay
            pieces, edges = _alive(pieces, edges, alive)
            expected = np.maximum(expected[alive], LEAST)
            p = expected / expected.sum()
        if len(pieces) <= room:
            break
        wanted = max(room, int(KEPT * len(pieces)))
        loss = expected * (np.log(p) - _alternatives(pieces, p))
        loss[: len(letters)] = math.inf
        order = np.lexsort((np.arange(len(pieces)), -loss))
        alive = np.zeros(len(pieces), dtype=bool)
        alive[order[:wanted]] = True
        pieces, edges = _alive(pieces, edges, alive)
        p = p[alive] / p[alive].sum()
    found = {piece: math.log(chance) for piece, chance in zip(pieces, p.tolist(), strict=True)}
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


# ---- substrings


def _substrings(strings: Sequence[str]) -> Iterator[tuple[int, int, Ints, Hashes]]:
    """For each length and each start: the strings (rows) that have such a substring, and its hash in each of them."""
    sizes = np.array([len(one) for one in strings])
    width = int(sizes.max(initial=0))
    codes = np.zeros((len(strings), width), dtype=np.uint64)
    flat = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    codes[np.arange(width) < sizes[:, None]] = flat
    hashes = np.zeros_like(codes)  # of the substring of the current length that starts at each letter
    for length in range(1, min(LONGEST_PIECE, width) + 1):
        for start in range(width - length + 1):
            hashes[:, start] = hashes[:, start] * BASE + codes[:, start + length - 1] + np.uint64(1)
            rows = np.flatnonzero(sizes >= start + length)
            yield length, start, rows, hashes[rows, start]


def _seeds(
    strings: Sequence[str], counts: Floats, letters: Sequence[str], most: int
) -> tuple[list[str], Floats]:  # fmt: skip
    """The letters, then the substrings with the largest count × length; and these numbers."""
    found: list[tuple[float, str]] = []
    single: Counter[str] = Counter()
    for length, parts in _by_length(_substrings(strings)):
        hashes = np.concatenate([part for _, _, part in parts])
        rows = np.concatenate([rows for _, rows, _ in parts])
        starts = np.repeat([start for start, _, _ in parts], [len(rows) for _, rows, _ in parts])
        _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
        total = np.bincount(which, weights=counts[rows])
        for place in np.flatnonzero(total >= 2).tolist():
            start = int(starts[first[place]])
            piece = strings[rows[first[place]]][start : start + length]
            if length == 1:
                single[piece] = int(total[place])
            else:
                found.append((float(total[place]) * length, piece))
    found.sort(key=lambda one: (-one[0], one[1]))
    found = found[: max(most - len(letters), 0)]
    weights = [max(float(single[letter]), LEAST) for letter in letters]
    return [*letters, *(piece for _, piece in found)], np.array([*weights, *(weight for weight, _ in found)])


def _by_length(
    substrings: Iterator[tuple[int, int, Ints, Hashes]],
) -> Iterator[tuple[int, list[tuple[int, Ints, Hashes]]]]:
    current = 0
    parts: list[tuple[int, Ints, Hashes]] = []
    for length, start, rows, hashes in substrings:
        if length != current and parts:
            yield current, parts
            parts = []
        current = length
        parts.append((start, rows, hashes))
    if parts:
        yield current, parts


# ---- cuts


class _Edge(NamedTuple):
    """In these rows (strings), the letters from `start` to `end` are the piece `ids`."""

    start: int
    end: int
    rows: Ints
    ids: Ints


def _edges(strings: Sequence[str], pieces: Sequence[str]) -> list[_Edge]:
    """Every place in every string where a piece stands."""
    tables: dict[int, tuple[Hashes, Ints]] = {}
    lengths = np.array([len(piece) for piece in pieces])
    for length in np.unique(lengths).tolist():
        ids = np.flatnonzero(lengths == length).astype(np.int32)
        hashes = _hashes([pieces[place] for place in ids.tolist()])
        order = np.argsort(hashes)
        tables[length] = hashes[order], ids[order]
    edges = []
    for length, start, rows, hashes in _substrings(strings):
        if length in tables and len(rows):
            known, numbers = tables[length]
            place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            hit = known[place] == hashes
            if hit.any():
                edges.append(_Edge(start, start + length, rows[hit].astype(np.int32), numbers[place[hit]]))
    return edges


def _alive(pieces: Sequence[str], edges: Sequence[_Edge], alive: NDArray[np.bool_]) -> tuple[list[str], list[_Edge]]:
    """Those pieces alone, renumbered."""
    number = np.cumsum(alive, dtype=np.int32) - np.int32(1)
    left = []
    for edge in edges:
        stays = alive[edge.ids]
        if stays.any():
            left.append(edge._replace(rows=edge.rows[stays], ids=number[edge.ids[stays]]))
    return [pieces[place] for place in np.flatnonzero(alive).tolist()], left


def _hashes(strings: Sequence[str]) -> Hashes:
    """Of strings of one length."""
    codes = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    hashes = np.zeros(len(strings), dtype=np.uint64)
    for column in codes.reshape(len(strings), -1).T:
        hashes = hashes * BASE + column + np.uint64(1)
    return hashes


def _expected(
    edges: Sequence[_Edge], strings: Sequence[str], counts: Floats, pieces: Sequence[str], p: Floats
) -> Floats:
    """(V,) c(v). Sums run over probabilities, not logarithms: a factor per letter keeps them in range, and cancels."""
    sizes = np.array([len(one) for one in strings])
    lengths = np.array([len(piece) for piece in pieces])
    scaled = p * np.exp(-float(p @ np.log(p)) / float(p @ lengths)) ** lengths
    every = np.arange(len(strings))
    forward = np.zeros((int(sizes.max()) + 1, len(strings)))  # (L + 1, W)
    forward[0] = 1
    for start, end, rows, ids in sorted(edges, key=lambda edge: edge.end):
        forward[end, rows] += forward[start, rows] * scaled[ids]
    backward = np.zeros_like(forward)
    backward[sizes, every] = 1
    for start, end, rows, ids in sorted(edges, key=lambda edge: -edge.start):
        backward[start, rows] += scaled[ids] * backward[end, rows]
    share = counts / forward[sizes, every]  # (W,)
    expected = np.zeros(len(pieces))
    for start, end, rows, ids in edges:
        used = share[rows] * forward[start, rows] * scaled[ids] * backward[end, rows]
        expected += np.bincount(ids, weights=used, minlength=len(pieces))
    return expected


def _alternatives(pieces: Sequence[str], p: Floats) -> Floats:
    """(V,) log-probability of the best cut of each piece into other pieces; −inf for letters."""
    logs = np.log(p)
    sizes = np.array([len(piece) for piece in pieces])
    best = np.full((int(sizes.max()) + 1, len(pieces)), -math.inf)  # (L + 1, V)
    best[0] = 0
    for start, end, rows, ids in sorted(_edges(pieces, pieces), key=lambda edge: edge.end):
        other = ids != rows
        here = rows[other]
        best[end, here] = np.maximum(best[end, here], best[start, here] + logs[ids[other]])
    found: Floats = best[sizes, np.arange(len(pieces))]
    return found
