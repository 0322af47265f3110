"""How often each of very many keys occurs, in bounded memory. Knows integers, not what they stand for.

New keys wait unmerged until they are as many as the table, so that merging costs little. A table that outgrows its
capacity forgets its rarest half (lossy counting, Manku and Motwani 2002): a count is then too low by at most `missed`.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Ints

CAPACITY = 20_000_000  # keys: 16 bytes each, twice that while they are merged


class Counts:
    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.missed = 0
        self._keys = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[Ints, Ints]] = []

    def add(self, keys: Ints) -> None:
        if len(keys):
            self._waiting.append(np.unique(keys, return_counts=True))
            if sum(len(part) for part, _ in self._waiting) >= max(len(self._keys), 1 << 20):
                self._merge()

    def above(self, minimum: int) -> tuple[Ints, Ints]:
        """The keys seen more than `minimum` times, sorted, and their counts."""
        self._merge()
        kept = self._counts > minimum
        return self._keys[kept], self._counts[kept]

    def _merge(self) -> None:
        keys = np.concatenate([self._keys, *(part for part, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(part for _, part in self._waiting)])
        self._waiting = []
        if not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        self._keys, self._counts = keys[starts], np.add.reduceat(counts, starts)
        if len(self._keys) > self.capacity:
            rarest = len(self._keys) - self.capacity // 2
            bound = int(np.partition(self._counts, rarest - 1)[rarest - 1])
            kept = self._counts > bound
            self._keys, self._counts = self._keys[kept], self._counts[kept]
            self.missed += bound


def find(keys: Ints, wanted: Ints) -> Ints:
    """Where each wanted key stands among sorted keys; −1 where it does not."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found: Ints = np.where(keys[at] == wanted, at, -1)
    return found
