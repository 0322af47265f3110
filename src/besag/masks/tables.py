"""What laws that look at tokens share: tables over the vocabulary, turns from weights, and what the law then tilts.

Two ways to turn weights w into a hidden set of a fixed size k, both one number a token and then `units.take`:

- a race (successive sampling without replacement, as WSBERT asks): token i arrives at −log(U_i) / w_i, the first k are
  hidden. The next token is always drawn in proportion to the weights of those that are left.
- proportional (systematic sampling in random order, Madow 1949): wanted chances p_i = min(1, c·w_i) with Σ p_i = k are
  laid end to end in random order on a line of length k; the tokens at U, U + 1, …, U + k − 1 are hidden. The chance of
  token i is p_i exactly.

The chance π(v) that v is hidden where it stands depends on what stands around it. In long passages it does not: the
time of the k-th arrival, or c, is then the same everywhere. `tilt_of` solves for it on the unigram law of the corpus:
π(v) = 1 − exp(−w_v τ) for a race, min(1, c·w_v) for proportional, with Σ_v p(v) π(v) = rate. log π is given up to the
constant that makes Σ_v p(v) π(v) = 1, so that taking it out leaves special tokens where they were on average.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from besag import noise
from besag.arrays import Floats, Ints
from besag.errors import BesagError, nearest, quoted
from besag.files.lines import lines_of
from besag.masks.passages import Passages
from besag.masks.units import gather, in_turn

if TYPE_CHECKING:
    from besag.masks.law import MaskLaw, Statistics

L = TypeVar("L", bound="MaskLaw")
T = TypeVar("T")

MARKS = ("▁", "Ġ")  # how tokenizers write that a token begins a word
TINY = 1e-300
POINT = 1 << 40  # fixed point: chances as integers


def carrying(law: L, **tables: object) -> L:
    """The same law with tables. They are no options of it, so no fields: equality and messages know options only."""
    other = copy.copy(law)
    for name, table in tables.items():
        object.__setattr__(other, name, table)
    return other


def needed(table: T | None, law: MaskLaw) -> T:
    if table is None:
        raise BesagError(f"the law {law.name!r} takes a table from the corpus: call law.prepare(statistics) first")
    return table


def refuse_unless(fits: bool, law: MaskLaw, option: str, right: str) -> None:
    if not fits:
        raise BesagError(f"the law {law.name!r} cannot have {option}={getattr(law, option)!r}: it must be {right}")


# ---- the corpus


def shares(statistics: Statistics) -> Floats:
    """(V,) the unigram law of ordinary tokens; 0 at special ones. A corpus without any token gives all the same."""
    counts = statistics.counts.astype(np.float64)
    counts[sorted(statistics.special)] = 0.0
    if not counts.sum():
        counts = np.ones_like(counts)
        counts[sorted(statistics.special)] = 0.0
    share: Floats = counts / max(counts.sum(), 1.0)
    return share


def by_token(path: str, statistics: Statistics) -> dict[int, str]:
    """What a file of lines token<TAB>value says of each id.

    A token is written as the tokenizer writes it, or as a plain word: `cat` is then also `▁cat` and `Ġcat`, unless they
    have lines of their own. Words that are no token of the vocabulary are passed over, but not all of them.
    """
    ids = {token: id for id, token in enumerate(statistics.tokens)}
    lines = dict(_lines(path))
    said = {ids[mark + word]: value for mark in MARKS for word, value in lines.items() if mark + word in ids}
    said.update({ids[word]: value for word, value in lines.items() if word in ids})
    if not said:
        word = next(iter(lines), "")
        raise BesagError(
            f"none of the {len(lines)} words of {path!r} is a token of this vocabulary; the first is {word!r}."
            f"{nearest(word, ids)}"
        )
    return {id: value for id, value in said.items() if id not in statistics.special}


def given_weights(path: str, statistics: Statistics) -> Floats:
    """(V,) the same where values are positive numbers; tokens without a line get the mean over the corpus."""
    weights = np.full(len(statistics.counts), np.nan)
    for id, value in by_token(path, statistics).items():
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            raise BesagError(
                f"{path!r} gives {statistics.tokens[id]!r} the weight {value!r}: it must be a number above 0 (what is "
                f"never hidden is never learned, and no correction brings it back)"
            )
        weights[id] = number
    known = ~np.isnan(weights)
    weights[~known] = np.average(weights[known], weights=shares(statistics)[known] + TINY)
    return weights


def _lines(path: str) -> Iterator[tuple[str, str]]:
    for number, line in lines_of(str(Path(path).expanduser())):
        if line.strip():
            token, tab, value = line.rpartition("\t")
            if not tab or not token:
                raise BesagError(f"line {number} of {path!r} is {quoted(line)}: it must be a token, a tab and a value")
            yield token, value.strip()


def sums_by(group: Ints, values: Floats, size: int) -> tuple[Floats, Ints]:
    """(size,) the sum of the values of each group and how many there were, whatever the order they came in."""
    order = np.lexsort((values, group))  # float sums depend on the order; this one does not
    count = np.bincount(group, minlength=size)
    total = np.bincount(group[order], weights=values[order], minlength=size)
    return total.astype(np.float64), count


# ---- turns


def race(passages: Passages, log_weight: Floats, seed: int, stream: int) -> Floats:
    """(T,) the logarithm of each token's arrival in an exponential race with rates exp(log_weight)."""
    height = noise.uniform(seed, stream, passages.draw[passages.row], passages.place)
    turn: Floats = np.log(-np.log(height)) - log_weight
    return turn


def proportional(passages: Passages, unit: Ints, weight: Floats, limit: Ints, seed: int, stream: int) -> Floats:
    """(T,) turns under which a unit is taken with a chance proportional to the mean weight of its tokens.

    `unit` (T,) numbers the units of each passage (−1: never taken), `weight` (T,) is above 0, `limit` (R,) in tokens.
    A turn stands at the first token of its unit. Exact for units of one token; longer ones may not fit into what is
    left of the budget, and those that were not drawn then come after, in random order.
    """
    units = gather(passages, unit)
    row, place = passages.row[units.first], passages.place[units.first]  # (U,)
    mean = np.bincount(units.member, weights=weight[units.token], minlength=len(units.size)) / units.size
    chance = chances(row, units.size, mean, limit)
    height = noise.uniform(seed, stream, passages.draw[row], place)
    order = in_turn(row, height)
    length = np.rint(chance[order] * POINT).astype(np.int64)  # integers: no sum depends on what stands beside
    end = np.cumsum(length)
    start = np.searchsorted(row[order], np.arange(len(limit)))  # the first unit of each passage
    end += POINT - np.append(0, end)[start][row[order]]
    offset = (noise.uniform(seed, stream, passages.draw, 0, 1) * POINT).astype(np.int64)[row[order]]
    drawn = np.empty(len(row), dtype=np.bool_)
    drawn[order] = (end - offset - 1) // POINT > (end - length - offset - 1) // POINT
    turn = np.full(len(unit), np.inf)
    turn[units.first] = np.where(drawn, height, 1 + height)
    return turn


def chances(row: Ints, size: Ints, weight: Floats, limit: Ints) -> Floats:
    """(U,) p = min(1, c·w), with the c of each passage for which Σ size·p = limit."""
    sure = np.zeros(len(row), dtype=np.bool_)
    while True:
        rest = limit - np.bincount(row[sure], weights=size[sure], minlength=len(limit))
        mass = np.bincount(row[~sure], weights=(size * weight)[~sure], minlength=len(limit))
        scaled = (rest / np.maximum(mass, TINY))[row] * weight
        beyond = ~sure & (scaled >= 1)
        if not beyond.any():
            chance: Floats = np.where(sure, 1.0, scaled)
            return chance
        sure |= beyond


# ---- tilts


def race_tilt(log_weight: Floats, share: Floats, rate: float) -> Floats:
    """(V,) log π of a race; see above."""
    return tilt_of(lambda time: -np.expm1(-np.exp(np.minimum(log_weight + time, 700.0))), share, rate)


def proportional_tilt(weight: Floats, share: Floats, rate: float) -> Floats:
    """(V,) log π where chances are proportional to weights; see above."""
    log_weight = np.log(np.maximum(weight, TINY))
    return tilt_of(lambda scale: np.exp(np.minimum(log_weight + scale, 0.0)), share, rate)


def tilt_of(
    chance: Callable[[float], Floats], share: Floats, rate: float, low: float = -800.0, high: float = 800.0
) -> Floats:
    """(V,) log π(v) − log Σ_u p(u) π(u), for the π = chance(t), growing in t, that hides `rate` of all tokens."""
    for _ in range(100):
        middle = (low + high) / 2
        if float(share @ chance(middle)) < rate:
            low = middle
        else:
            high = middle
    found = chance(high)
    tilt: Floats = np.log(np.maximum(found, TINY)) - math.log(float(share @ found))
    return tilt
