"""Masked diffusion that takes back: what was revealed may be masked again, and be drawn anew given what has come since.

`kind="remdm"` (ReMDM). From t to s < t, α the schedule's share of shown places:

    shown  → masked with probability σ,                  σ = min(η/T, (1 − α_s)/α_t, 1)
    masked → revealed with probability (α_s − (1 − σ) α_t) / (1 − α_t),   x_i ~ p(x_i | what is shown at t)

What is invariant. A place that shows its token with probability α_t does so with probability (1 − σ)α_t + α_s − (1 −
σ)α_t = α_s after the step: the extra reveals make up for what is taken back. (With `ancestral`'s smaller probability
of a reveal too few places would be shown.) So for every σ the process has the marginals of the forward process, and a
model that was trained without re-masking can be used. If places are independent and the answers ideal, the whole text
has the law of the forward process at every time.

For dependent places, those that are revealed in one step are drawn independently of each other, as in `ancestral`,
and with re-masking more of them share a step. η is a rate: σ is η/T in a step, so a place is masked again about η/2
times (log-linear), however fine the grid. Therefore the error vanishes as 1/T: reveals and re-maskings one at a time
are in detailed balance with the forward process. With a σ that does not fall with T it vanishes as 1/√T only. The
last step has σ = 0 and reveals all. With η = 0 the law is that of `ancestral`. Where the answers are exact there is
nothing to correct but this error, and a large η makes it larger.

With a network, whose answers belong to no joint, re-masking is a way to correct what was drawn early, from little
context. The times are noise alone here too, so a pass is spent on a chain only in steps that reveal something.

`kind="p2"` (after P2). The number of shown places is fixed, ⌈n α_s⌉ after a step, and *which* is planned: every
hidden place gets a token drawn from the answer, and of all places those are shown whose tokens are surest,

    score = log p(drawn token) where hidden,   η · log p(shown token) where shown, as it was when it was drawn

The rest is masked (again). η = 0 never takes back; the larger η, the more a shown token must have been sure of
itself. What is chosen depends on the drawn tokens, so this is no sample of the joint, not even for independent
places: likely tokens are preferred. P2 asks the network about shown tokens in place; here their score is remembered,
since an answer about a token that it sees is no conditional.

Places that show a token at first are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import torch
from torch import Tensor

from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.noise import Sampling
from besag.samplers.drawing import COLDEST
from besag.samplers.kernel import Canvas, Info, Noise, changes, made, register
from besag.samplers.kernels.decoding import (
    Decoder,
    drawn_at,
    hidden_at_first,
    never_the_mask,
)
from besag.samplers.kernels.schedules import checked_grid, schedule, shown


class RemaskState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    moves: Tensor  # (C, L) on the host: the places that were hidden at first
    hides: Tensor  # (C, L) on the host: those that are now
    score: Tensor  # (C, L) the log-probability of a shown token when it was drawn


class Move(NamedTuple):
    """What a step did, beside the tokens: (C, L) on the host each."""

    asked: Tensor
    revealed: Tensor
    taken_back: Tensor


@register
@dataclass(frozen=True)
class Remask(Decoder):
    name = "remask"
    title = "masked diffusion that masks again what it has revealed"
    formula = "shown → masked with probability σ; masked → revealed with (α_s − (1 − σ)α_t)/(1 − α_t)"
    law = "remdm: the joint for T → ∞, or if places are independent; p2: prefers likely tokens, no sample of the joint"
    passes = "at most T"
    ends = True
    cite = ("wang2025", "peng2025")

    kind: Annotated[Literal["remdm", "p2"], "re-mask at random, or the least sure"] = "remdm"
    eta: Annotated[float, "how much is taken back"] = 1.0
    grid: Annotated[int, "steps of time"] = 64
    schedule: Annotated[Literal["log_linear", "cosine", "geometric"], "of the share that is shown"] = "log_linear"

    def __post_init__(self) -> None:
        if not 0 <= self.eta <= 1 / COLDEST:
            raise BesagError(f"eta={quoted(self.eta)}: how much is taken back, a number from 0 (nothing) up")
        checked_grid(self.grid)
        schedule(self.schedule)
        super().__post_init__()

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return made(self.grid, steps) * (length + source)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> RemaskState:
        moves = hidden_at_first(canvas)
        canvas = never_the_mask(canvas, engine.conditionals.width)
        score = torch.zeros(canvas.ids.shape, device=canvas.ids.device)
        return RemaskState(canvas.ids.clone(), canvas, 0, moves, moves, score)

    def step(self, engine: Engine, noise: Noise, state: RemaskState) -> tuple[RemaskState, Info]:
        if self.kind == "remdm":
            drawn, score, move = self._by_chance(engine, noise, state)
        else:
            drawn, score, move = self._by_plan(engine, noise, state)
        device = state.ids.device
        ids = drawn.where(move.revealed.to(device), state.ids).masked_fill(
            move.taken_back.to(device), state.canvas.mask_id
        )
        hides = (state.hides & ~move.revealed) | move.taken_back
        more = {
            "revealed": move.revealed.sum(1),
            "remasked": move.taken_back.sum(1),
            "time": torch.full((len(ids),), 1 - (state.step + 1) / self.grid, dtype=torch.float64),
        }
        score = torch.where(move.revealed.to(device), score, state.score)  # in the finer precision of the two
        state = state._replace(step=state.step + 1, hides=hides, score=score)
        return state._replace(ids=ids), Info(changes(state.ids, ids), move.asked.any(1).long(), more)

    def _by_chance(self, engine: Engine, noise: Noise, state: RemaskState) -> tuple[Tensor, Tensor, Move]:
        uniform = noise.grid(Sampling.TIME, state.step, state.ids.shape[1])  # (C, L)
        showing, masking = self.chances(state.step)
        revealed = state.hides & (uniform < showing)
        taken_back = state.moves & ~state.hides & (uniform < masking)
        drawn, score = self._drawn(engine, noise, state, revealed)
        return drawn, score, Move(revealed, revealed, taken_back)

    def _by_plan(self, engine: Engine, noise: Noise, state: RemaskState) -> tuple[Tensor, Tensor, Move]:
        drawn, score = self._drawn(engine, noise, state, state.hides)
        share = shown(schedule(self.schedule), self.grid, state.step + 1)
        room = (state.moves.sum(1) * share - 1e-9).ceil()  # (C,) how many are shown after the step
        shows = state.moves & ~state.hides
        scores = torch.cat(  # the shown ones first, so that they win against their equals
            [
                (self.eta * state.score).cpu().masked_fill(~shows, -torch.inf),
                score.cpu().masked_fill(~state.hides, -torch.inf),
            ],
            1,
        )  # (C, 2L)
        chosen = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1) < room[:, None]
        old, new = chosen.chunk(2, dim=1)
        return drawn, score, Move(state.hides, state.hides & new, shows & ~old)

    def chances(self, step: int) -> tuple[float, float]:
        """The probabilities that a hidden place is shown, and that a shown one is hidden again, in this step."""
        before, after = (shown(schedule(self.schedule), self.grid, each) for each in (step, step + 1))
        sigma = min(self.eta / self.grid, 1.0, (1 - after) / before if before else 1.0)
        return (after - (1 - sigma) * before) / (1 - before), sigma

    def _drawn(self, engine: Engine, noise: Noise, state: RemaskState, where: Tensor) -> tuple[Tensor, Tensor]:
        return drawn_at(engine, noise, state.ids, state.canvas, where, state.step, self.how, self.pick)

    def steps(self, canvas: Canvas) -> int:
        return self.grid

    def done(self, state: Any) -> bool:
        return bool(state.step >= self.grid)
