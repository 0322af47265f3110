"""Masked diffusion whose tokens have schedules of their own (DiffusionBERT): what says more is masked earlier.

Token v is still shown at time t with probability

    α_v(t) = 1 − t − λ sin(πt) h_v,     h_v = 1 − H̄ / H(v),     H(v) = −log of v's share of the corpus, H̄ its mean

so a rare token (h > 0) goes early and a frequent one (h < 0) late. α_v must fall, or nothing goes back: −α̇_v(t) =
1 + λπ cos(πt) h_v > 0 needs |h_v| < 1/(λπ), so h is cut off at 0.9/(λπ). (The published code cuts α off instead, and
takes H̄ over each sentence; then the schedule of a token hangs on hidden tokens, which no way back can know.)

The bound. Given x, a token masked at t came back at the rate r_x(t) = −α̇_x(t) / (1 − α_x(t)). The model does not know
x: it brings v back at the rate μ_v r_v(t), μ its answer. The divergence of the two jump processes is

    −log p(x | n) ≤ ∫₀¹ E Σ_{i masked} [ −r_x log μ_x  +  Σ_v μ_v r_v − r_x ] dt

The first part is a weighted cross-entropy. The second is zero when all tokens share a schedule, and no bound holds
without it otherwise: that a token is *still* masked already says something about it, and a model must not be paid for
ignoring this. At its best μ_v ∝ P(v | x_t) has the factor 1 − α_v(t) of its own place. That factor is known, so it is
added here, μ_v ∝ exp(logit_v) · (1 − α_v(t)), and not learned: with one place hidden the network's own answers are the
plain conditionals, and scores need no correction. (With several hidden places what is learned still carries the factors
of the *other* ones.)

`masks` is False, as for `mdlm`. Needs the counts of tokens: the option `counts`, or `prepare(statistics)`. They are
kept beside the finished network, where the kernel `spindle` finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from besag.errors import BesagError
from besag.masks import token_schedules
from besag.masks.law import Statistics
from besag.masks.token_schedules import curvatures
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.mdlm import checked_floor, per_token, predictions, without
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective


@OBJECTIVES.register
class Spindle(Objective):
    name = "spindle"
    title = "masked diffusion, telling tokens masked first (DiffusionBERT)"
    cite = ("he2023",)
    masks = False

    bend: Tensor  # (V,) λ h_v

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        strength: Annotated[float, "λ: how far schedules differ"] = 0.3,
        floor: Annotated[float, "least time that is drawn"] = 1e-3,
        counts: Annotated[
            Sequence[int] | Tensor | None, "how often each token occurs; if none, from the corpus"
        ] = None,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if strength < 0:
            raise BesagError(f"strength={strength!r}: λ is at least 0 (0 is mdlm)")
        self.strength, self.floor = strength, checked_floor(floor)
        self.counts: Tensor | None = None  # (V,)
        self.register_buffer("bend", torch.zeros(encoder.width))
        if counts is not None:
            self._learn(torch.as_tensor(counts))

    def prepare(self, statistics: Statistics) -> None:
        """Take the information of each token from the corpus."""
        self._learn(torch.from_numpy(np.asarray(statistics.counts)))

    def _learn(self, counts: Tensor) -> None:
        known = torch.zeros(self.encoder.width, dtype=torch.float64)
        if len(counts) > len(known):
            raise BesagError(f"counts of {len(counts)} tokens for a network that knows {len(known)}")
        known[: len(counts)] = counts.double().cpu()
        if not float(known.sum()) > 0:
            raise BesagError("the counts are all zero, so no token says more than another")
        self.bend.copy_(curvatures(known, self.strength))
        self.counts = known

    def save_extras(self, folder: str | Path) -> None:
        """Counts and λ, beside the finished model: whoever samples must know its schedules."""
        assert self.counts is not None
        token_schedules.save(folder, self.counts, self.strength)

    def forward(self, batch: Batch) -> Loss:
        if self.counts is None:
            raise BesagError("spindle needs to know how often each token occurs: give counts=, or prepare(statistics)")
        row = batch.layout.row
        time = self.floor + (1 - self.floor) * draws.spread(self.seed, Training.SPINDLE_TIME, batch.draw)  # (R,)
        noise = draws.uniform(self.seed, Training.SPINDLE_HIDE, batch.draw[row], batch.layout.column)  # (T,)
        hidden = batch.free & (noise < masked_by(time[row], self.bend[batch.ids]))
        asked = hidden.nonzero()[:, 0]  # (M,)
        target = batch.ids[asked]
        states = self.encoder.states(batch.ids.masked_fill(hidden, self.encoder.mask_id), batch.layout)
        logits = without(self.encoder.logits(states[asked]), self.encoder.mask_id)
        losses, plain = self.losses(logits, target, time[row[asked]])
        logs = {"masked_loss": plain.detach().sum() / max(len(asked), 1)}
        return Loss(per_token(losses.sum(), batch), logs, predictions(self.encoder, target, plain, logits))

    def losses(self, logits: Tensor, target: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """What each masked token adds to the bound at its time (M,), and its cross-entropy (M,)."""
        time = time[:, None]  # (M, 1)
        gone = masked_by(time, self.bend).float()  # (M, V) 1 − α_v
        rate = (leaving(time, self.bend) / gone).float()  # (M, V) r_v
        answer = F.log_softmax(logits + gone.log(), -1)  # (M, V) log μ_v
        own = target[:, None]
        plain = -answer.gather(1, own)[:, 0]
        true_rate = rate.gather(1, own)[:, 0]
        return true_rate * plain + (answer.exp() * rate).sum(-1) - true_rate, plain


def masked_by(time: Tensor, bend: Tensor) -> Tensor:
    """1 − α(t) = t + λ h sin(πt)."""
    return time + bend * torch.sin(pi * time)


def leaving(time: Tensor, bend: Tensor) -> Tensor:
    """−α̇(t) = 1 + λ h π cos(πt)."""
    return 1 + bend * pi * torch.cos(pi * time)
