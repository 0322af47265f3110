"""Noise as a function: the same seed and counters give the same number, whatever ran before or beside it.

Philox4x32-10 (Salmon et al. 2011), vectorised over the counters. There is no state, so batching, reordering or a retry
after an out-of-memory cannot change a draw, and two draws can never share noise by accident.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from besag.errors import BesagError

# Streams keep the uses of one seed apart; they are the first counter.
ORDER, SUBSET, DRAW = range(3)

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW, _WORD = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(key: tuple[int, int], counter: tuple[Any, Any, Any, Any]) -> list[NDArray[np.uint64]]:
    """Four 32-bit words (held in uint64) for a two-word key and a four-word counter, broadcast over the counter."""
    k0, k1 = np.uint64(key[0]), np.uint64(key[1])
    c0, c1, c2, c3 = (np.asarray(word, dtype=np.uint64) for word in counter)
    for _ in range(10):
        left, right = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (right >> _WORD) ^ c1 ^ k0, right & _LOW, (left >> _WORD) ^ c3 ^ k1, left & _LOW
        k0, k1 = (k0 + _KEY_STEPS[0]) & _LOW, (k1 + _KEY_STEPS[1]) & _LOW
    return [c0, c1, c2, c3]


def uniform(seed: int, *counters: ArrayLike) -> NDArray[np.float64]:
    """Numbers in the open interval (0, 1), one for each point of the (at most four) broadcast counters below 2**32."""
    if not 1 <= len(counters) <= 4:
        raise ValueError(f"noise takes one to four counters, not {len(counters)}")
    try:
        seed = operator.index(seed) & ((1 << 64) - 1)
    except TypeError:
        raise BesagError(f"seed={seed!r}: give a whole number") from None
    words = np.broadcast_arrays(*(np.asarray(c, dtype=np.uint64) & _LOW for c in counters))
    padded: Any = (*words, *[np.zeros_like(words[0])] * (4 - len(words)))
    first, second, _, _ = philox((seed & 0xFFFFFFFF, seed >> 32), padded)
    bits = ((first >> np.uint64(6)) << np.uint64(26)) | (second >> np.uint64(6))  # 52 bits: +0.5 below stays exact
    return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52)
