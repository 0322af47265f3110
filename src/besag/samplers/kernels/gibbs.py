"""Gibbs: hide a few places, draw each from the model's answer given the rest.

    x_i ~ p(x_i | x_∖i)        i uniform (`scan="random"`), in turn (`"systematic"`), or a random subset (`"subset"`)

One place at a time this is the Gibbs sampler of the model's conditionals. If they are those of a joint law, the law is
invariant. A network's are not: the chain then has a stationary law of its own, which depends on the scan, and which no
energy describes ("BERT has a mouth", and the authors' later note that it is no Markov random field).

`scan="subset"` hides K ⊆ free places, |K| uniform on 1 … n and K uniform given its size, and draws all of K from *one*
pass: the move of a model that decodes in parallel. It is a product of conditionals, so even a true joint is in general
not invariant where places depend on each other; see `block_gibbs` for moves that keep it.

Where other places are still hidden by the mask the answer is given the shown ones alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor

from besag.engine import Engine
from besag.hardware import send
from besag.noise import Sampling
from besag.samplers.drawing import Drawing, draw
from besag.samplers.kernel import SWEEPS, Canvas, Info, Kernel, Noise, changes, register
from besag.samplers.kernels.decoding import foremost


class GibbsState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    free: Tensor  # (C, L) on the host, so that no step waits for the device


@register
@dataclass(frozen=True)
class Gibbs(Kernel):
    name = "gibbs"
    title = "one place at a time, drawn given all others"
    formula = "x_i ~ p(x_i | x_∖i)"
    law = "the joint, if the conditionals have one and places go one by one; else the stationary law of this scan"
    passes = "1 a step"
    cite = ("wang2019", "li2024")

    scan: Annotated[
        Literal["random", "systematic", "subset"], "which place is next: any, in turn, or several at once"
    ] = "random"
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    def __post_init__(self) -> None:
        Drawing(self.temperature, self.top_k, self.top_p)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return (SWEEPS * n if steps is None else steps) * (length + source)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> GibbsState:
        return GibbsState(canvas.ids.clone(), canvas, 0, canvas.free.cpu())

    def step(self, engine: Engine, noise: Noise, state: GibbsState) -> tuple[GibbsState, Info]:
        canvas = state.canvas
        row, place = self._where(noise, state.free, state.step)  # (M,) each, on the host
        uniform = noise.asks(Sampling.DRAW, state.step, row, place)
        at = send(row, state.ids.device), send(place, state.ids.device)
        shown = state.ids.index_put(at, state.ids.new_full((), canvas.mask_id))
        drawing = Drawing(self.temperature, self.top_k, self.top_p)
        drawn = draw(engine, shown, row, place, uniform, drawing=drawing, allowed=canvas.allowed, given=canvas.given)
        ids = state.ids.index_put(at, drawn.token)
        info = Info(changes(state.ids, ids), torch.ones(len(ids), dtype=torch.long))
        return state._replace(ids=ids, step=state.step + 1), info

    def _where(self, noise: Noise, free: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """The places drawn in this step, chain by chain."""
        count = free.sum(1)  # (C,)
        number = free.cumsum(1) - 1  # (C, L) of each free place among the free ones
        if self.scan == "subset":
            size = (noise.chains(Sampling.SIZE, step) * count).floor() + 1  # uniform on 1 … n
            chosen = foremost(noise.grid(Sampling.WHERE, step, free.shape[1]), free, size)
        else:
            turn = torch.full_like(count, step) % count
            if self.scan == "random":
                turn = (noise.chains(Sampling.WHERE, step) * count).long()
            chosen = free & (number == turn[:, None])
        row, place = chosen.nonzero(as_tuple=True)
        return row, place
