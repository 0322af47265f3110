"""Masked diffusion, backwards from masks (MDLM): in each step of time some masked places are revealed, all at once.

    t_k = 1 − k/T;   from t to s a masked place is revealed with probability (α_s − α_t) / (1 − α_t),
    as a token drawn from the model's answer to what is shown at t;   what is shown never changes

The mask itself is never an answer ("SUBS"), nor is any token that the canvas forbids. The last step reveals what is
left, and draws it like everything else: taking the likeliest token there is another law.

The law. Places that are revealed in the same step are drawn independently of each other. That is the only error: if
no two places ever shared a step, this would be the chain rule in a uniformly random order, which is exact where the
answers are those of a joint law. So the total variation from the joint is at most the probability that two reveals
share a step. With n places and T equal steps of the log-linear schedule this is 1 − T(T−1)…(T−n+1)/Tⁿ ≤ n(n−1)/2T.
Where the answers belong to no joint, the limit T → ∞ is the average over all orders of the chain rule; that is what
`first_hitting` draws from, one place at a time, with the same noise.

The cache. With a schedule that treats all tokens alike, *when* a place is revealed is noise alone (`schedules.py`),
so the step of every reveal is drawn before the first pass. A step of this kernel brings each chain to *its own* next
time at which something is revealed. Chains need not be at the same time, so all of them run in one full batch, and no
pass is spent on a time at which nothing happens: a text of n places costs at most min(n, T) passes. `cache=False` is
the plain loop, one pass at every time for every hidden place; it draws the same samples from the same noise, and is
there to be compared with.

Not to be confused with `mask_predict`, which reveals where the model is surest, and so draws from no chain rule at
all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import torch
from torch import Tensor

from besag.engine import Engine
from besag.noise import Sampling
from besag.samplers.drawing import Drawing
from besag.samplers.kernel import Canvas, Info, Kernel, Noise, changes, made, register
from besag.samplers.kernels.decoding import (
    drawn_at,
    hidden_at_first,
    most_hidden,
    never_the_mask,
    refuse_nothing_hidden,
)
from besag.samplers.kernels.schedules import ENDLESS, FINEST, checked_grid, reveal_step, schedule


class AncestralState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    reveal: Tensor  # (C, L) on the host: the step of the grid that reveals a place; 0 where nothing was hidden
    made: Tensor  # (C,) on the host: the steps of the grid that each chain has behind it


@register
@dataclass(frozen=True)
class Ancestral(Kernel):
    name = "ancestral"
    title = "masked diffusion, backwards from masks"
    formula = "masked places are revealed with probability (α_s − α_t)/(1 − α_t), x_i ~ p(x_i | x_t)"
    law = "the joint, if the conditionals have one, else the average over orders, but for places revealed in one step"
    passes = "at most min(n, T) for n places"
    ends = True
    cite = ("sahoo2024", "austin2021")
    aliases = ("mdlm",)

    grid: Annotated[int, "steps of time"] = 64
    schedule: Annotated[Literal["log_linear", "cosine", "geometric"], "of the share that is shown"] = "log_linear"
    cache: Annotated[bool, "spend no pass where nothing is revealed"] = True
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    def __post_init__(self) -> None:
        checked_grid(self.grid, ENDLESS if self.cache else FINEST)
        schedule(self.schedule)
        Drawing(self.temperature, self.top_k, self.top_p)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return made(min(n, self.grid) if self.cache else self.grid, steps) * (length + source)

    def check(self, canvas: Canvas) -> None:
        refuse_nothing_hidden(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> AncestralState:
        uniform = noise.grid(Sampling.TIME, 0, canvas.ids.shape[1])
        reveal = reveal_step(schedule(self.schedule), uniform, self.grid) * hidden_at_first(canvas)
        canvas = never_the_mask(canvas, engine.conditionals.width)
        return AncestralState(canvas.ids.clone(), canvas, 0, reveal, torch.zeros(len(reveal), dtype=torch.long))

    def step(self, engine: Engine, noise: Noise, state: AncestralState) -> tuple[AncestralState, Info]:
        left = state.reveal > state.made[:, None]  # (C, L) what is still masked
        busy = left.any(1)  # (C,)
        following = state.reveal.where(left, torch.tensor(self.grid)).amin(1) if self.cache else state.made + 1
        made = following.where(busy, state.made)
        chosen = left & (state.reveal == made[:, None])
        drawn, _ = drawn_at(
            engine, noise, state.ids, state.canvas, chosen if self.cache else left, step=0,
            drawing=Drawing(self.temperature, self.top_k, self.top_p),
        )  # fmt: skip
        ids = drawn.where(chosen.to(drawn.device), state.ids)
        more = {"revealed": chosen.sum(1), "time": 1 - made.double() / self.grid}
        return state._replace(ids=ids, step=state.step + 1, made=made), Info(changes(state.ids, ids), busy.long(), more)

    def steps(self, canvas: Canvas) -> int:
        return min(self.grid, most_hidden(canvas)) if self.cache else self.grid

    def done(self, state: Any) -> bool:
        return not bool((state.reveal > state.made[:, None]).any())  # known on the host: nothing waits for the device
