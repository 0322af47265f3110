"""Masked diffusion without a grid: every place is revealed at its exact time, one place a step.

    t ← t · u^{1/k}   while k places are masked;   one of them, uniformly;   x_i ~ p(x_i | what is shown)

Under the log-linear schedule a place is revealed at a time that is uniform on (0, 1). The latest of k such times
below t is t·u^{1/k} in law, and which place it belongs to is uniform. So one uniform number a place holds both rules
at once: its time, and by sorting, the order. Times are almost surely different, so places never share a step, and
nothing is lost that `ancestral` loses on its grid: this is `ancestral` for T → ∞, and with the same noise it is the
same sample.

The law. The chain rule in a uniformly random order. If the answers are those of a joint law, every order gives that
law, and the sample is exact. If not, each order has a law of its own, and this is their average. The order is never
chosen from a drawn token or from an answer, so nothing is tilted. Another schedule would change the times and not the
order, so there is no choice of it.

`log_prob` is that of the token drawn in the step. Its sum over the steps is the log-probability of the text *in this
order*: given a joint, that of the text. Otherwise it is one term of an average of probabilities over n! orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

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


class FirstHittingState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    order: Tensor  # (C, L) on the host: all places, those to be revealed first, and these by time
    times: Tensor  # (C, L) on the host: of the reveals, in that order; 0 where there is nothing to reveal


@register
@dataclass(frozen=True)
class FirstHitting(Kernel):
    name = "first_hitting"
    title = "masked diffusion, one reveal a step at its exact time"
    formula = "t ← t·u^{1/k} with k places masked; one of them, uniformly; x_i ~ p(x_i | what is shown)"
    law = "the joint, if the conditionals have one; else the average over all orders of the chain rule"
    passes = "n for n places"
    ends = True
    cite = ("zheng2025",)

    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    def __post_init__(self) -> None:
        Drawing(self.temperature, self.top_k, self.top_p)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return made(n, steps) * (length + source)

    def check(self, canvas: Canvas) -> None:
        refuse_nothing_hidden(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> FirstHittingState:
        uniform = noise.grid(Sampling.TIME, 0, canvas.ids.shape[1]) * hidden_at_first(
            canvas
        )  # 0 is never a uniform number
        times, order = uniform.sort(dim=1, descending=True, stable=True)
        canvas = never_the_mask(canvas, engine.conditionals.width)
        return FirstHittingState(canvas.ids.clone(), canvas, 0, order, times)

    def step(self, engine: Engine, noise: Noise, state: FirstHittingState) -> tuple[FirstHittingState, Info]:
        place = state.order[:, state.step, None]  # (C, 1)
        busy = state.times[:, state.step] > 0  # (C,)
        chosen = busy.new_zeros(state.ids.shape).scatter(1, place, busy[:, None])
        drawing = Drawing(self.temperature, self.top_k, self.top_p)
        ids, log_prob = drawn_at(engine, noise, state.ids, state.canvas, chosen, step=0, drawing=drawing)
        more = {"time": state.times[:, state.step], "log_prob": log_prob.sum(1)}
        return state._replace(ids=ids, step=state.step + 1), Info(changes(state.ids, ids), busy.long(), more)

    def steps(self, canvas: Canvas) -> int:
        return most_hidden(canvas)

    def done(self, state: Any) -> bool:
        return not bool((state.times[:, state.step :] > 0).any())
