"""The n-grams of texts, numbered, and what is counted of them: distinct, novelty, stutter, entropy, BLEU.

What each number means stands in `texts.py`. Knows sequences of anything hashable, no text and no model.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Floats, Ints

SMOOTHING = 0.1  # matches, where there are none
BLOCK = 1 << 18  # words of a reference that are looked up at a time


class Rate(NamedTuple):
    value: float
    error: float  # standard error, texts taken as independent; nan for one text


def ratio(above: Floats, below: Floats) -> Rate:
    """Σ above / Σ below over texts, with the error of a ratio of sums."""
    total = float(below.sum())
    if not total:
        return Rate(math.nan, math.nan)
    value, count = float(above.sum()) / total, len(above)
    spread = float(((above - value * below) ** 2).sum())
    return Rate(value, math.sqrt(count / (count - 1) * spread) / total if count > 1 else math.nan)


class Grams:
    """The n-grams of some texts, numbered: an order k gram is the pair of an order k − 1 gram and the next word."""

    def __init__(self, texts: Sequence[Sequence[Hashable]], n: int) -> None:
        self.n = n
        self.known: dict[Hashable, int] = {}
        numbers = [self.known.setdefault(word, len(self.known)) for text in texts for word in text]
        self.lengths = np.array([len(text) for text in texts], np.int64)  # (N,)
        self.flat = np.array(numbers, np.int64)  # (T,) all words
        self.text = np.repeat(np.arange(len(texts)), self.lengths)  # (T,) whose they are
        self.codes: list[Ints] = []  # of each order above 1, sorted: the place of a code is the number of its gram
        self.grams = [self.flat]  # of each order: (T,) the number of the gram that begins here, −1 where none fits
        for order in range(2, n + 1):
            code, fits = self._code(self.flat, self.text, order)
            self.codes.append(np.unique(code[fits]))
            self.grams.append(np.where(fits, np.searchsorted(self.codes[-1], code), -1))

    def __len__(self) -> int:
        return len(self.lengths)

    def _code(self, flat: Ints, text: Ints, order: int, before: Ints | None = None) -> tuple[Ints, NDArray[np.bool_]]:
        """(T,) the pair (gram before, next word) as one number, and where there is one."""
        before = self.grams[order - 2] if before is None else before
        ahead, same = np.full(len(flat), -1), np.zeros(len(flat), bool)
        last = max(len(flat) - order + 1, 0)
        ahead[:last] = flat[order - 1 :]
        same[:last] = text[order - 1 :] == text[:last]
        return before * len(self.known) + ahead, same & (before >= 0) & (ahead >= 0)

    def distinct(self) -> tuple[float, ...]:
        kept = [grams[grams >= 0] for grams in self.grams]
        return tuple(len(np.unique(grams)) / len(grams) if len(grams) else math.nan for grams in kept)

    def entropy(self) -> float:
        share = np.bincount(self.flat) / len(self.flat)
        return float(-(share * np.log2(share)).sum())

    def stutter(self) -> Rate:
        inside = self.text[1:] == self.text[:-1]
        equal = inside & (self.flat[1:] == self.flat[:-1])
        repeated = np.bincount(self.text[1:][equal], minlength=len(self)).astype(np.float64)
        return ratio(repeated, np.maximum(self.lengths - 1, 0).astype(np.float64))

    def bleu(self) -> Floats:
        """(N,) of each text against all others."""
        logs, orders = np.zeros(len(self)), np.zeros(len(self))
        for grams in self.grams:
            fits = grams >= 0
            pair, counts = np.unique(grams[fits] * len(self) + self.text[fits], return_counts=True)
            gram, text = pair // len(self), pair % len(self)
            order = np.lexsort((-counts, gram))  # of each gram the text that has most of it first
            gram, text, counts = gram[order], text[order], counts[order]
            first = np.append(True, gram[1:] != gram[:-1]) if len(gram) else np.zeros(0, bool)
            highest = counts[first][np.cumsum(first) - 1]
            runner_up = np.where(np.append(~first[1:], False), np.append(counts[1:], 0), 0)
            elsewhere = np.where(first, runner_up, highest)  # most of the gram in one *other* text
            matches = np.bincount(text, np.minimum(counts, elsewhere), len(self))
            total = np.bincount(text, counts, len(self))
            has = total > 0
            logs[has] += np.log(np.maximum(matches, SMOOTHING * (matches == 0))[has] / total[has])
            orders += has
        nearest = self._nearest_lengths()
        return np.asarray(np.exp(np.minimum(0.0, 1 - nearest / self.lengths) + logs / orders))

    def _nearest_lengths(self) -> Ints:
        """(N,) the length of the other text whose length is nearest."""
        kinds, which, counts = np.unique(self.lengths, return_inverse=True, return_counts=True)
        nearest = kinds.copy()
        for at in np.flatnonzero(counts == 1).tolist():
            others = np.delete(kinds, at)
            nearest[at] = others[np.abs(others - kinds[at]).argmin()]  # the first, so the shorter of two
        return nearest[which]

    def novelty(self, reference: Iterable[Sequence[Hashable]]) -> tuple[float, ...]:
        """Of each order, the share of n-grams that no text of the reference holds."""
        seen = [np.zeros(len(self.known), bool), *(np.zeros(len(codes), bool) for codes in self.codes)]
        for flat, text in self._blocks(reference):
            grams = flat
            for order in range(1, self.n + 1):
                if order > 1:
                    code, fits = self._code(flat, text, order, grams)
                    at = np.minimum(np.searchsorted(self.codes[order - 2], code), len(self.codes[order - 2]) - 1)
                    fits &= self.codes[order - 2][at] == code if len(self.codes[order - 2]) else False
                    grams = np.where(fits, at, -1)
                seen[order - 1][grams[grams >= 0]] = True
        found = []
        for grams, known in zip(self.grams, seen, strict=True):
            kept = grams[grams >= 0]
            found.append(float(1 - known[kept].mean()) if len(kept) else math.nan)
        return tuple(found)

    def _blocks(self, reference: Iterable[Sequence[Hashable]]) -> Iterator[tuple[Ints, Ints]]:
        """Words of the reference by number, −1 for those that no text has, and which line they stand in."""
        number, block, lengths = self.known.get, list[Sequence[Hashable]](), 0
        for line in chain(reference, (None,)):
            if line is not None:
                block.append(line)
                lengths += len(line)
            if block and (line is None or lengths >= BLOCK):
                flat = np.fromiter((number(word, -1) for words in block for word in words), np.int64, lengths)
                yield flat, np.repeat(np.arange(len(block)), [len(words) for words in block])
                block, lengths = [], 0
