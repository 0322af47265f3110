"""Tokens as far apart as the budget lets them: every (n/k)-th free token, from a random one on.

With n free tokens in a ring and a budget of k, an offset o is drawn uniformly from 0 … n − 1, and token j is hidden if
⌊(j + o + 1) k/n⌋ > ⌊(j + o) k/n⌋, j + o taken around the ring: exactly k tokens, every gap between two of them ⌊n/k⌋ or
⌈n/k⌉, and each token with the chance k/n. A network that answers for all hidden tokens in one pass takes them to be
independent given the rest: where neighbours say most of each other, tokens far apart are nearest to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag import noise
from besag.arrays import Bools, Floats
from besag.masks.law import LAWS, MaskLaw
from besag.masks.passages import Passages
from besag.masks.units import budget
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class Spaced(MaskLaw):
    name: ClassVar[str] = "spaced"
    title: ClassVar[str] = "tokens as far apart as the budget lets them, from a random one on"
    cite: ClassVar[tuple[str, ...]] = ()

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        size, limit = passages.sizes, budget(passages, rate, seed)  # (R,)
        token = np.flatnonzero(passages.free)
        row = passages.row[token]
        number = np.arange(len(token)) - np.searchsorted(row, np.arange(len(size)))[row]  # which of its passage's
        offset = np.floor(noise.uniform(seed, Training.SPACED, passages.draw) * size).astype(np.int64)
        at = (number + offset[row]) % size[row]
        hidden = np.zeros(len(passages.ids), dtype=np.bool_)
        hidden[token] = (at + 1) * limit[row] // size[row] > at * limit[row] // size[row]
        return hidden
