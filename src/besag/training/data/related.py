"""Which documents belong together: by links, or as members of one group. One relation, symmetric, of document numbers.

    links   d and e belong together if either names the other
    group   d and e belong together if the same stands in their field

Knows numbers of documents and noise; knows no tokens. A group is held once, whatever its size, and not as all its
pairs.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.errors import BesagError
from besag.training.data.rows import Document


class Related(NamedTuple):
    """Document d belongs with other[low[d]:high[d]], ascending; where that is a group, d itself is among them."""

    low: Ints  # (D,)
    high: Ints  # (D,)
    other: Ints  # (E,)
    own: Ints  # (D,) where d stands in `other` among its own; −1: it does not
    before: Floats  # (E + 1,) the weights of all before each, by which partners are drawn

    @property
    def digest(self) -> str:
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in self)).hexdigest()

    def draw(self, document: Ints, noise: Floats) -> Ints:
        """(A,) one that each document belongs with, by noise (A,); −1 where there is none.

        Chances are inverse to how many each of them belongs with, so that what everything links to is not always there
        (LinkBERT's diversity). In a group all are equal.
        """
        low, high, own = self.low[document], self.high[document], self.own[document]
        first = self.before[np.maximum(own, 0)] - self.before[low]
        weight = np.diff(self.before, append=self.before[-1])  # (E + 1,): there may be no link at all
        mine = np.where(own < 0, 0.0, weight[np.maximum(own, 0)])
        total = self.before[high] - self.before[low] - mine
        at = noise * total
        at = at + np.where((own >= 0) & (at >= first), mine, 0.0)  # itself is stepped over
        found = np.searchsorted(self.before, self.before[low] + at, side="right") - 1
        found = np.clip(found, low, np.maximum(high - 1, low))
        alone = high - low - (own >= 0) <= 0
        return np.where(alone, -1, np.append(self.other, -1)[np.where(alone, -1, found)])

    def contains(self, one: Ints, other: Ints) -> Bools:
        """(A,) do these two belong together, pair by pair?"""
        count = len(self.low)
        begin = np.zeros(len(self.other), np.int64)
        begin[self.low[self.high > self.low]] = self.low[self.high > self.low]
        key = np.maximum.accumulate(begin) * count + self.other  # ascending: ranges one after the other
        at = np.searchsorted(key, self.low[one] * count + other)
        found: Bools = (self.high[one] > self.low[one]) & (np.append(key, -1)[at] == self.low[one] * count + other)
        return found

    def walk(self, noise: Floats) -> tuple[Ints, Ints]:
        """(D,), (D,) every document once, those that belong together one after the other; and whom each stands with.

        The first by noise stands with all it belongs with that stand with nobody yet; and so on.
        """
        order: list[Ints] = []
        leader = np.full(len(self.low), -1)
        for first in np.argsort(noise, kind="stable").tolist():
            if leader[first] >= 0:
                continue
            leader[first] = first
            others = self.other[self.low[first] : self.high[first]]
            others = others[leader[others] < 0]
            leader[others] = first
            order.append(np.append(first, others[np.argsort(noise[others], kind="stable")]))
        every = np.concatenate([np.zeros(0, np.int64), *order])
        return every, leader[every]


def by_group(groups: Iterable[str | None]) -> Related:
    """Documents with the same group; one without a group is alone."""
    known: dict[str, int] = {}
    numbers, alone = [], 0
    for group in groups:
        alone -= group is None
        numbers.append(alone if group is None else known.setdefault(group, len(known)))
    code = np.array(numbers, np.int64)
    other = np.argsort(code, kind="stable")
    ordered = code[other]
    low, high = np.searchsorted(ordered, code), np.searchsorted(ordered, code, side="right")
    own = np.empty(len(code), np.int64)
    own[other] = np.arange(len(code))
    return Related(low, high, other, own, np.arange(len(code) + 1, dtype=np.float64))


def by_links(documents: Iterable[Document]) -> Related:
    """Documents that name each other; a name that nothing has is passed over, and that is told."""
    number: dict[str, int] = {}
    named: list[tuple[str, ...]] = []
    for document in documents:
        beside = document.beside
        assert beside is not None
        if beside.name is not None and number.setdefault(beside.name, len(named)) != len(named):
            raise BesagError(
                f"{document.origin}: another document is called {beside.name!r}, too: names are of one each"
            )
        named.append(beside.links)
    count = len(named)
    lost: list[str] = []
    pairs: set[tuple[int, int]] = set()
    for one, links in enumerate(named):
        for name in links:
            other = number.get(name)
            if other is None:
                lost.append(name)
            elif other != one:
                pairs |= {(one, other), (other, one)}
    if lost:
        said = f"{len(lost):,} of {sum(map(len, named)):,} links name no document that is there, the first {lost[0]!r}"
        warnings.warn(f"{said}: they are passed over", stacklevel=2)
    edges = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    every = np.arange(count)
    low, high = np.searchsorted(edges[:, 0], every), np.searchsorted(edges[:, 0], every, side="right")
    degree = np.maximum(high - low, 1)
    weight = 1.0 / degree[edges[:, 1]]
    return Related(low, high, edges[:, 1].copy(), np.full(count, -1), np.append(0.0, np.cumsum(weight)))
