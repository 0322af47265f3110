"""Rare tokens more often (WSBERT; Zhang et al. 2023): w(v) = max(F(v), θ)^−α, with F(v) the count of v in the corpus.

Sampled within the passage, without replacement, in proportion to the weights: at a rate of 0.15 rare tokens are hidden
almost whenever they occur. θ keeps the very rare ones (names, errors) from ruling. α = 0 is the uniform law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from besag.arrays import Bools, Floats
from besag.masks.law import LAWS, MaskLaw, Statistics
from besag.masks.passages import Passages
from besag.masks.tables import carrying, needed, race, race_tilt, refuse_unless, shares
from besag.masks.units import budget, take_tokens
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class Frequency(MaskLaw):
    name: ClassVar[str] = "frequency"
    title: ClassVar[str] = "rare tokens, more often (WSBERT)"
    cite: ClassVar[tuple[str, ...]] = ("zhang2023",)
    aliases: ClassVar[tuple[str, ...]] = ("wsbert",)
    _log_weight: ClassVar[Floats | None] = None  # (V,)
    _share: ClassVar[Floats | None] = None  # (V,)

    theta: Annotated[float, "θ: counts below it count as θ"] = 10.0
    alpha: Annotated[float, "α: 0 is the uniform law"] = 0.5

    def __post_init__(self) -> None:
        refuse_unless(self.theta > 0, self, "theta", "above 0")
        refuse_unless(self.alpha >= 0, self, "alpha", "0 or more")

    def prepare(self, statistics: Statistics) -> Self:
        log_weight = -self.alpha * np.log(np.maximum(statistics.counts, self.theta))
        return carrying(self, _log_weight=log_weight, _share=shares(statistics))

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        turn = race(passages, needed(self._log_weight, self)[passages.ids], seed, Training.FREQUENCY)
        return take_tokens(passages, turn, budget(passages, rate, seed))

    def tilt(self, rate: float = 0.15) -> Floats:
        return race_tilt(needed(self._log_weight, self), needed(self._share, self), rate)
