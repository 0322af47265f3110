"""Tokens the network gets wrong more often (AMLM, "Mask and You Shall Receive").

Each token v has a chance w(v) = m·r(v), m the rate of the moment. Every `every` steps, from what was predicted since:

    acc(v) = (correct + ½) / (seen + 1),   r ← λ r + (1 − λ)(1 − acc),   rescaled so that Σ_v p(v) r(v) = 1,

then clipped to [least, most] for use (the table itself keeps its exact mean). p is the corpus's law of tokens, so m
stays the share of tokens hidden. `soft`: the probability given to the true token counts in place of right or wrong.
Published settings: m falls from 0.40 to 0.15, which is the recipe's rate law; details of rescaling and clipping are a
third party's. The published law hides each token independently; here a passage hides exactly its budget, with chances
proportional to r. The tilt is that of the table as it is when asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.masks.law import LAWS, Adaptive, MaskLaw, Statistics
from besag.masks.passages import NO_TAGS, Passages
from besag.masks.tables import carrying, needed, proportional, proportional_tilt, refuse_unless, shares, sums_by
from besag.masks.units import budget, take_tokens
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class AdaptiveTokens(MaskLaw, Adaptive):
    name: ClassVar[str] = "adaptive"
    title: ClassVar[str] = "tokens that the network gets wrong, more often (AMLM)"
    cite: ClassVar[tuple[str, ...]] = ("edman2025",)
    aliases: ClassVar[tuple[str, ...]] = ("amlm",)
    _table: ClassVar[dict[str, np.ndarray] | None] = None  # relative (V,), seen (V,), right (V,), steps ()
    _share: ClassVar[Floats | None] = None  # (V,)

    every: Annotated[int, "steps between two updates of the table"] = 100
    keep: Annotated[float, "λ: how much of the table stays at an update"] = 0.9
    soft: Annotated[bool, "count the probability of the true token, not right or wrong"] = False
    least: Annotated[float, "least chance, in units of the rate"] = 0.05
    most: Annotated[float, "greatest chance, in units of the rate"] = 5.0

    def __post_init__(self) -> None:
        refuse_unless(self.every >= 1, self, "every", "1 step or more")
        refuse_unless(0 <= self.keep < 1, self, "keep", "at least 0 and below 1")
        refuse_unless(0 < self.least <= 1, self, "least", "above 0 and at most 1")
        refuse_unless(self.most >= 1, self, "most", "1 or more")

    def prepare(self, statistics: Statistics) -> Self:
        size = len(statistics.counts)
        table = {
            "relative": np.ones(size),
            "seen": np.zeros(size),
            "right": np.zeros(size),
            "steps": np.zeros((), dtype=np.int64),
        }
        return carrying(self, _table=table, _share=shares(statistics))

    @property
    def weights(self) -> Floats:
        """(V,) r(v), clipped: the chance of each token relative to the rate."""
        weights: Floats = np.clip(needed(self._table, self)["relative"], self.least, self.most)
        return weights

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        limit = budget(passages, rate, seed)
        turn = proportional(passages, passages.place, self.weights[passages.ids], limit, seed, Training.ADAPTIVE)
        return take_tokens(passages, turn, limit)

    def observe(self, ids: Ints, losses: Floats, correct: Bools, tag: Ints = NO_TAGS) -> None:
        table = needed(self._table, self)
        right = np.exp(-losses) if self.soft else correct.astype(np.float64)
        total, count = sums_by(ids, right, len(table["seen"]))
        table["seen"] += count
        table["right"] += total
        table["steps"] += 1
        if table["steps"] % self.every == 0:
            accuracy = (table["right"] + 0.5) / (table["seen"] + 1)
            relative = self.keep * table["relative"] + (1 - self.keep) * (1 - accuracy)
            table["relative"][:] = relative / float(needed(self._share, self) @ relative)
            table["seen"][:] = 0
            table["right"][:] = 0

    def state(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in needed(self._table, self).items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        for name, array in needed(self._table, self).items():
            array[...] = state[name]

    def tilt(self, rate: float = 0.15) -> Floats:
        return proportional_tilt(self.weights, needed(self._share, self), rate)
