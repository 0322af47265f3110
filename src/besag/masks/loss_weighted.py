"""Hard tokens more often (dynamic WSBERT; Zhang et al. 2023): w(v) = exp(ℓ(v) / τ).

ℓ(v) is the mean loss of v in the last step that predicted it, averaged with what was known before (`decay`; 0 as
published: the last step alone). Losses are measured in units of log V, the loss of a uniform guess, so that ℓ lies
about between 0 and 1 and the published τ = 0.2 makes a token that is not known at all e⁵ times as heavy as one that is
known for certain. In nats (`nats=True`) weights would differ by e⁵⁰, and the law would hide the hardest tokens only.

A token that was never predicted counts as not known at all. The tilt is that of the table as it is when asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.masks.law import LAWS, Adaptive, MaskLaw, Statistics
from besag.masks.passages import NO_TAGS, Passages
from besag.masks.tables import carrying, needed, race, race_tilt, refuse_unless, shares, sums_by
from besag.masks.units import budget, take_tokens
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class LossWeighted(MaskLaw, Adaptive):
    name: ClassVar[str] = "loss_weighted"
    title: ClassVar[str] = "hard tokens, more often (dynamic WSBERT)"
    cite: ClassVar[tuple[str, ...]] = ("zhang2023",)
    _losses: ClassVar[Floats | None] = None  # (V,) in nats
    _share: ClassVar[Floats | None] = None  # (V,)

    tau: Annotated[float, "τ: the smaller, the more hard tokens rule"] = 0.2
    decay: Annotated[float, "of the running mean of losses"] = 0.0
    nats: Annotated[bool, "measure losses in nats, not in units of log V"] = False

    def __post_init__(self) -> None:
        refuse_unless(self.tau > 0, self, "tau", "above 0")
        refuse_unless(0 <= self.decay < 1, self, "decay", "at least 0 and below 1")

    def prepare(self, statistics: Statistics) -> Self:
        size = len(statistics.counts)
        return carrying(self, _losses=np.full(size, math.log(max(size, 2))), _share=shares(statistics))

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        turn = race(passages, self._log_weight[passages.ids], seed, Training.LOSS_WEIGHTED)
        return take_tokens(passages, turn, budget(passages, rate, seed))

    @property
    def _log_weight(self) -> Floats:  # (V,)
        losses = needed(self._losses, self)
        unit = 1.0 if self.nats else math.log(max(len(losses), 2))
        return losses / (unit * self.tau)

    def observe(self, ids: Ints, losses: Floats, correct: Bools, tag: Ints = NO_TAGS) -> None:
        table = needed(self._losses, self)
        total, count = sums_by(ids, losses, len(table))
        seen = count > 0
        table[seen] = self.decay * table[seen] + (1 - self.decay) * total[seen] / count[seen]

    def state(self) -> dict[str, np.ndarray]:
        return {"losses": needed(self._losses, self).copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        needed(self._losses, self)[:] = state["losses"]

    def tilt(self, rate: float = 0.15) -> Floats:
        return race_tilt(self._log_weight, needed(self._share, self), rate)
