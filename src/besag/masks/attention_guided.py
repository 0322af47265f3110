"""Tokens that the network itself looks at, more often (or, with a negative power, less often).

The weight of a token is (attention received / mean)^power. There are two ways to say what was received:

- `with_weights(received)`: one number for each token of the passages that are masked next, for a run that reads them
  with the network first. The law then depends on whole contexts, no table of π describes it, and `tilt` is None.
- the table: a running mean of the attention each *kind* of token received, fed by `observe_attention`. This is what a
  plain run uses; it costs no second pass, and knows nothing of the passage at hand beyond its tokens. Until something
  is observed the law is the uniform one: losses (`observe`) teach it nothing.

`received` turns attention probabilities into such numbers. Attention is no explanation of what matters; the law hides
what is attended to, and claims no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Bools, Floats, Ints
from besag.errors import BesagError
from besag.masks.law import LAWS, Adaptive, MaskLaw, Statistics
from besag.masks.passages import Passages
from besag.masks.tables import carrying, needed, proportional, proportional_tilt, refuse_unless, shares, sums_by
from besag.masks.units import budget, take_tokens
from besag.noise import Training

LEAST = 1e-3  # of the mean: what nothing looks at is still hidden now and then


@LAWS.register
@dataclass(frozen=True)
class AttentionGuided(MaskLaw, Adaptive):
    name: ClassVar[str] = "attention_guided"
    title: ClassVar[str] = "tokens that the network looks at, more often"
    _table: ClassVar[Floats | None] = None  # (V,) 1 is the mean of all tokens
    _share: ClassVar[Floats | None] = None  # (V,)
    _given: ClassVar[Floats | None] = None  # (T,)

    power: Annotated[float, "of the attention received; negative hides what is not attended to"] = 1.0
    decay: Annotated[float, "of the running mean"] = 0.99

    def __post_init__(self) -> None:
        refuse_unless(0 <= self.decay < 1, self, "decay", "at least 0 and below 1")

    def prepare(self, statistics: Statistics) -> Self:
        return carrying(self, _table=np.ones(len(statistics.counts)), _share=shares(statistics))

    def with_weights(self, received: ArrayLike) -> Self:
        """The same law for one batch of passages, of which `received` (T,) says how much attention each token got."""
        given = np.asarray(received, dtype=np.float64)
        if given.ndim != 1 or not np.isfinite(given).all() or (given < 0).any():
            raise BesagError(
                "attention received is one number, 0 or more, for each token of the passages, specials too"
            )
        return carrying(self, _given=given)

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        received = needed(self._table, self)[passages.ids] if self._given is None else self._given
        if len(received) != len(passages.ids):
            raise BesagError(f"with_weights was given {len(received)} numbers for {len(passages.ids)} tokens")
        if self._given is not None:  # relative to the passage, so that no other passage matters
            rows = len(passages.draw)
            total = np.bincount(passages.row[passages.free], weights=received[passages.free], minlength=rows)
            mean = total / np.maximum(passages.sizes, 1)
            received = np.where(mean[passages.row] > 0, received / np.where(mean > 0, mean, 1.0)[passages.row], 1.0)
        limit = budget(passages, rate, seed)
        weight = np.maximum(received, LEAST) ** self.power
        turn = proportional(passages, passages.place, weight, limit, seed, Training.ATTENTION_GUIDED)
        return take_tokens(passages, turn, limit)

    def observe_attention(self, ids: Ints, received: Floats) -> None:
        """Attention that tokens received in one step, over all processes, in any unit: it is divided by its mean."""
        table = needed(self._table, self)
        mean = float(np.sort(received).mean()) if len(received) else 0.0
        if mean > 0:
            total, count = sums_by(ids, received / mean, len(table))
            seen = count > 0
            table[seen] = self.decay * table[seen] + (1 - self.decay) * total[seen] / count[seen]

    def observe(self, ids: Ints, losses: Floats, correct: Bools) -> None:
        """Losses say nothing about attention."""

    def state(self) -> dict[str, np.ndarray]:
        return {"received": needed(self._table, self).copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        needed(self._table, self)[:] = state["received"]

    def tilt(self, rate: float = 0.15) -> Floats | None:
        if self._given is not None:
            return None
        weight = np.maximum(needed(self._table, self), LEAST) ** self.power
        return proportional_tilt(weight, needed(self._share, self), rate)


def received(attention: ArrayLike) -> Floats:
    """(L,) the mean attention that each place receives, from probabilities (…, L, L): rows look, columns are seen."""
    probabilities = np.asarray(attention, dtype=np.float64)
    seen: Floats = probabilities.mean(axis=tuple(range(probabilities.ndim - 1)))
    return seen
