"""A corpus as a stream of units, tokens or words, in bounded memory, for the tables that laws take from it.

Where a word begins is read off the tokens: what is marked as a beginning (or, with "##", not marked as a continuation),
and where letters, digits and other signs meet. Tokens that hold white space are never part of anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from besag.arrays import Bools, Ints
from besag.masks.counting import Counts, find
from besag.masks.law import Statistics
from besag.masks.tables import MARKS

CHUNK = 1 << 22  # tokens worked on at a time


def chunks(documents: Iterable[Ints], breaks: Iterable[int] = (), size: int = CHUNK) -> Iterator[Ints]:
    """Whole documents one after the other, at least `size` tokens at a time; −1 after each, and for each break."""
    broken = np.array(sorted(breaks), dtype=np.int64)
    waiting: list[Ints] = []
    held = 0
    for document in documents:
        ids = np.append(np.asarray(document, dtype=np.int64), -1)
        waiting.append(ids)
        held += len(ids)
        if held >= size:
            yield _broken(np.concatenate(waiting), broken)
            waiting, held = [], 0
    if waiting:
        yield _broken(np.concatenate(waiting), broken)


def _broken(ids: Ints, breaks: Ints) -> Ints:
    if len(breaks):
        ids[np.isin(ids, breaks)] = -1
    return ids


class Tokens:
    """Units are tokens."""

    def __init__(self, statistics: Statistics, min_count: int) -> None:
        self.documents = statistics.documents
        self.breaks = _breaks(statistics)
        counts = np.zeros(len(statistics.counts), dtype=np.int64)
        for ids in self._read():
            counts += np.bincount(ids[ids >= 0], minlength=len(counts))
        self.total = max(int(counts.sum()), 1)
        self.counts = np.maximum(counts, 1)  # those that are rare are in no n-gram, and only their logarithm is taken
        self.frequent = counts > min_count

    def __iter__(self) -> Iterator[Ints]:
        for ids in self._read():
            yield np.where((ids >= 0) & self.frequent[ids], ids, -1)

    def _read(self) -> Iterator[Ints]:
        return chunks(self.documents, self.breaks)

    def spell(self, units: list[int]) -> list[int]:
        return units


class Words:
    """Units are the frequent words, numbered; a word is known by a 64-bit hash of its tokens."""

    def __init__(self, statistics: Statistics, min_count: int, capacity: int) -> None:
        self.documents = statistics.documents
        self.breaks = _breaks(statistics)
        self.begins = _Beginnings(statistics.tokens)
        counts, self.total = Counts(capacity), 0
        for ids in chunks(self.documents, self.breaks):
            start, names = self._words(ids)
            names = names[ids[start] >= 0]
            counts.add(names)
            self.total += len(names)
        self.total = max(self.total, 1)
        self.names, self.counts = counts.above(max(min_count - counts.missed, 0))
        self.spellings: list[list[int] | None] = [None] * len(self.names)

    def __iter__(self) -> Iterator[Ints]:
        for ids in chunks(self.documents, self.breaks):
            start, names = self._words(ids)
            units = np.where(ids[start] >= 0, find(self.names, names), -1)
            found, first = np.unique(units, return_index=True)
            ends = np.append(start[1:], len(ids))
            for unit, at in zip(found.tolist(), first.tolist(), strict=True):
                if unit >= 0 and self.spellings[unit] is None:
                    self.spellings[unit] = ids[start[at] : ends[at]].tolist()
            yield units

    def _words(self, ids: Ints) -> tuple[Ints, Ints]:
        """Where each word begins (a break is a word of its own), and its hash."""
        start = np.flatnonzero(self.begins(ids))
        place = np.arange(len(ids)) - np.repeat(start, np.diff(start, append=len(ids)))
        factors = np.cumprod(np.full(int(place.max(initial=0)) + 1, 0x9E3779B97F4A7C15, dtype=np.uint64))
        mixed = (ids + 2).astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        names: Ints = np.add.reduceat(mixed * factors[place], start).view(np.int64)
        return start, names

    def spell(self, units: list[int]) -> list[int]:
        return [id for unit in units for id in self.spellings[unit] or ()]


class _Beginnings:
    """Which tokens of a stream begin a word."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        continued = any(token.startswith("##") and len(token) > 2 for token in tokens)
        self.continues = np.array([token.startswith("##") and len(token) > 2 for token in tokens] + [False])
        self.marked = np.array([token.startswith(MARKS) or continued for token in tokens] + [True])
        bare = [token.lstrip("".join(MARKS)) for token in tokens]
        self.first = np.array([_sort(token[:1]) for token in bare] + [-1])
        self.last = np.array([_sort(token[-1:]) for token in bare] + [-1])
        self.empty = np.array([not token for token in bare] + [False])  # a mark alone belongs to what follows it

    def __call__(self, ids: Ints) -> Bools:
        """(C,) ids, −1 for a break (which reads the last row of each table)."""
        previous = np.append(-1, ids[:-1])
        meets = (self.first[ids] != self.last[previous]) & ~self.empty[previous]
        begins: Bools = (self.marked[ids] | meets | (previous < 0)) & ~self.continues[ids]
        begins[:1] = True
        return begins | (ids < 0) | (previous < 0)


def _sort(character: str) -> int:
    return 0 if character.isalpha() else 1 if character.isdigit() else 2


def _breaks(statistics: Statistics) -> set[int]:
    spaced = {id for id, token in enumerate(statistics.tokens) if not token or token.split() != [token]}
    return spaced | statistics.special
