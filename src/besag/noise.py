"""Noise as a function: the same seed and counters give the same number, whatever ran before or beside it.

Philox4x32-10 (Salmon et al. 2011), vectorised over the counters. There is no state, so batching, reordering or a retry
after an out-of-memory cannot change a draw, and two draws can never share noise by accident.

The first counter is the stream: what a number is for. All streams of the package stand here, one class for all that can
meet under one seed in one use; within a class no number comes twice. Across classes some do (a chain, a tokenizer and a
monitor each count from 128): they never draw for the same thing, and to renumber them would change known draws.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from besag.errors import BesagError, quoted

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
LEAST_SEED, MOST_SEED = -(2**63), 2**64 - 1
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


def whole_seed(seed: object) -> int:
    """A seed, if it is one: beyond 64 bits two of them would be the same."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not LEAST_SEED <= int(seed) <= MOST_SEED:  # type: ignore[call-overload]
        raise BesagError(f"seed={quoted(seed)}: give a whole number{' of at most 64 bits' if whole else ''}")
    return int(seed)  # type: ignore[call-overload,no-any-return]


def uniform(seed: int, *counters: ArrayLike) -> NDArray[np.float64]:
    """Numbers in the open interval (0, 1), one for each point of the (at most four) broadcast counters below 2**32."""
    if not 1 <= len(counters) <= 4:
        raise ValueError(f"noise takes one to four counters, not {len(counters)}")
    seed = whole_seed(seed) & MOST_SEED
    words = np.broadcast_arrays(*(np.asarray(c, dtype=np.uint64) & _LOW for c in counters))
    padded: Any = (*words, *[np.zeros_like(words[0])] * (4 - len(words)))
    first, second, _, _ = philox((seed & 0xFFFFFFFF, seed >> 32), padded)
    bits = ((first >> np.uint64(6)) << np.uint64(26)) | (second >> np.uint64(6))  # 52 bits: +0.5 below stays exact
    return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52)


# ---- streams


@unique
class Measuring(IntEnum):
    """Scores, joints, fillings and diagnostics: the seed of one call."""

    ORDER = 0  # of a chain's places
    SUBSET = 1  # which places are hidden, which texts are looked at
    DRAW = 2  # from a finite law: fillings, pairs, strata
    MINORS = 0x4D494E52  # "MINR": the 2 × 2 tables of the rectangle test


@unique
class Study(IntEnum):
    """The study of pairs: the seed of the study."""

    PAIR = 0x50414952  # "PAIR": which places of a text
    SIDE = 0x50414953  # which of the two comes first


@unique
class Sampling(IntEnum):
    """Kernels, constraints, augmenting and editing: the seed of a run. Beside it stand (chain, step, place).

    A kernel never uses one of them twice at the same (chain, step, place).
    """

    DRAW = 128
    WHERE = 129
    SIZE = 130
    ACCEPT = 131
    TIME = 132
    SWAP = 133
    START = 134
    EXTRA = 135


@unique
class Training(IntEnum):
    """Masks, objectives and batches: the seed of a training run, which all of them share."""

    # masks: what every law uses
    TURNS = 16
    ROUNDING = 17
    RATE = 18
    REPLACEMENT_KIND = 19
    REPLACEMENT_TOKEN = 20
    ASKED = 21
    ASKED_ROUNDING = 22
    # masks: of one law
    SPAN_LENGTH = 23
    FREQUENCY = 32
    LOSS_WEIGHTED = 33
    INFORMASK = 34
    CONTENT_ORDER = 35
    CONTENT_PASS = 36
    ADAPTIVE = 37
    IMPORTANCE = 38
    PMI_TURN = 40
    PMI_OVERLAP = 41
    SPACED = 42
    ENTITY_TOKEN = 43
    # objectives
    MDLM_TIME = 64
    MDLM_HIDE = 65
    MDLM_BOUND_TIME = 66
    MDLM_BOUND_HIDE = 67
    SPINDLE_TIME = 68
    SPINDLE_HIDE = 69
    UNROLL_SHARE = 70
    UNROLL_CORRUPT = 71
    UNROLL_KIND = 72
    UNROLL_TOKEN = 73
    UNROLL_SAMPLE = 74
    MASKLESS_PLACE = 75
    PERMUTED_ORDER = 80
    MAE_SHARE = 81
    MAE_WEIGHTS = 82
    LATE_MASK_SHARE = 83
    ELECTRA_DRAW = 84
    ELECTRA_WEIGHTS = 85
    GLANCE_SHOWN = 86
    CORRECT_SHOWN = 87
    ATTENTION_GUIDED = 88
    ATTENTION_ROUNDING = 89
    ERNIE_HIDE = 90
    ERNIE_ROUNDING = 91
    ERNIE_OVERLAP = 92
    ERNIE_FINE = 93
    ERNIE_WEIGHTS = 94
    GROUP = 147
    GROUP_SHARE = 148
    GROUP_HIDE = 149
    COMPATIBLE = 144  # which passages pay
    COMPATIBLE_PAIR = 145
    COMPATIBLE_TOKEN = 146
    RETROMAE_SEEN = 160
    RETROMAE_WEIGHTS = 161
    EXLM_SHARE = 162
    EXLM_WEIGHTS = 163
    EVOLUTION_GROUP = 164
    EVOLUTION_PICK = 165
    EVOLUTION_ROUNDING = 166
    LERT_WEIGHTS = 167
    LERT_TEXT = 168
    LERT_HIDE = 169
    LERT_ROUNDING = 170
    BLOCK_TIME = 208
    BLOCK_SHIFT = 209
    BLOCK_HIDE = 210
    BLOCK_BOUND_TIME = 211
    BLOCK_BOUND_HIDE = 212
    # data
    SHUFFLE = 96
    BATCHES = 97
    BATCH_TARGET = 98
    STREAM_ORDER = 99
    STREAM_TARGET = 100
    CONTEXT_WALK = 101  # in which order documents that belong together stand
    CONTEXT_KIND = 102  # what the second of two pieces is
    CONTEXT_PARTNER = 103  # which document it is of
    CONTEXT_PIECE = 104  # which piece of it
    FIELD = 105  # is a field of a header hidden?
    RELATION_START = 106  # the first weights of the head that tells how pieces belong together
    LINE_PLAIN = 107  # which lines are learned as plain text
    LINE_HIDE = 108
    # a labelled task beside an objective
    TASK_EXAMPLES = 112  # which of them stand beside a batch
    TASK_START = 113  # the head's first weights
    # a head that is tuned alone
    HEAD_SPLIT = 176  # which examples are held out
    HEAD_ORDER = 177
    HEAD_RATE = 178
    HEAD_HIDE = 179


@unique
class Prompting(IntEnum):
    """The search for a prompt: its seed."""

    ROWS = 0x524F5753  # "ROWS": those that a gradient is taken on, and those that candidates are tried on
    SHOTS = 0x53484F54  # "SHOT": which examples stand before a prompt


@unique
class TokenizerTraining(IntEnum):
    """Which texts a tokenizer is trained on: a command of its own, with a seed of its own."""

    SAMPLE = 128


@unique
class Monitoring(IntEnum):
    """What a run is watched on: always the monitor's own seed, so that all runs are watched alike."""

    SENTENCES = 129
    PASSAGES = 130
    LENGTHS = 131
    NEIGHBOURS = 132
    ASKED = 133
