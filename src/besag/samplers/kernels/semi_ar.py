"""Long text by windows: place after place as `ordered` draws them, but the network sees one window of the text.

    window w is the stretch of text [s_w, s_w + window),   s_w = w · stride, the last one pushed back inside the text
    x_i ~ p(x_i | what is shown in the first window that holds a hidden place),   one place at a time

The first window is filled whole, place by place: from left to right, or in a random order (`inner`). Then the window
moves on by `stride` tokens; its first window − stride tokens are context by now, and the last ones are filled. The
special tokens at both ends of the text stand at both ends of every window, so a text may be longer than the model.

With `grid=T` a window is filled as MDLM fills it, by T steps of time of a masked diffusion (log-linear schedule),
all places that are revealed in one step drawn from one pass, independently of each other (see `ancestral`). A window of
n hidden places then costs at most min(n, T) passes; times at which nothing is revealed cost none.

With window ≥ n, the length of the text without special tokens, this is the chain rule, the kernel `ordered`, and draws
from the joint exactly if the conditionals have one. With a shorter window it draws from another law: each place is
drawn as if the text began where the window begins and ended where it ends, so what has left the window is forgotten,
and what is given beyond its right end is not known yet. Only conditionals without such long dependence lose nothing.

A window is counted in tokens of text, those that are given among them, since that is what a network has room for.

Not to be confused with block diffusion, whose network was trained to see all blocks before the current one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from besag.checks import MOST_PLACES, whole_number
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.noise import Sampling
from besag.samplers.drawing import Drawing, draw
from besag.samplers.kernel import Canvas, Info, Kernel, Noise, State, changes, hidden, made, register
from besag.samplers.kernels.decoding import most_hidden, never_the_mask, refuse_nothing_hidden
from besag.samplers.kernels.schedules import ENDLESS, checked_grid, reveal_step, schedule

ENDS = 2  # special tokens around a text, at most


@register
@dataclass(frozen=True)
class SemiAr(Kernel):
    name = "semi_ar"
    title = "long text, place by place or by masked diffusion, seen through a window that moves on"
    formula = "x_i ~ p(x_i | the window of the text around it)"
    law = "the joint, if the conditionals have one and the window holds the whole text; else that of cut contexts"
    passes = "n for n hidden places, 1 a step, each of a window's length; at most T a window with grid=T"
    ends = True
    long = True
    cite = ("sahoo2024",)

    window: Annotated[int, "tokens that the network sees"] = 64
    stride: Annotated[int | None, "by how many tokens the window moves on; if none, half a window"] = None
    inner: Annotated[Literal["left_to_right", "random"], "order within a window"] = "left_to_right"
    grid: Annotated[int | None, "steps of time that fill a window by masked diffusion; if none, place by place"] = None
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    def __post_init__(self) -> None:
        right = "give how many tokens of text are seen at a time, at least 1"
        whole_number(self.window, "window", right=right, most=MOST_PLACES)
        if self.stride is not None and not 1 <= self.stride <= self.window:
            raise BesagError(
                f"stride={quoted(self.stride)}: a window of {self.window} moves on by 1 to {self.window} tokens, else "
                "places are passed over"
            )
        if self.grid is not None:
            checked_grid(self.grid, ENDLESS)
            if self.inner != "left_to_right":
                raise BesagError(f"grid={self.grid} reveals in the order of time: leave inner={self.inner!r} out")
        Drawing(self.temperature, self.top_k, self.top_p)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        around = min(ENDS, length - n)  # special tokens, which every window shows
        seen = min(length - around, self.window)
        passes = n
        if self.grid is not None:
            stride = self.stride or max(1, self.window // 2)
            passes = min(n, (1 + -(-(length - around - seen) // stride)) * self.grid)
        return made(passes, steps) * (seen + around + source)

    def check(self, canvas: Canvas) -> None:
        refuse_nothing_hidden(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> State:
        lead, trail = ends(engine, canvas)
        limit = engine.conditionals.max_length
        width = min(self.window, canvas.ids.shape[1] - lead - trail)
        if limit is not None and lead + width + trail > limit:
            raise BesagError(
                f"window={self.window}: {engine.conditionals.name!r} sees {limit} tokens, {lead + trail} of them "
                f"special here, so a window has at most {limit - lead - trail}"
            )
        canvas = never_the_mask(canvas, engine.conditionals.width)
        return State(canvas.ids.clone(), canvas, 0)

    def steps(self, canvas: Canvas) -> int:
        return most_hidden(canvas)

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        canvas, hides = state.canvas, hidden(state).cpu()
        lead, trail = ends(engine, canvas)
        chains, length = hides.shape
        width = min(self.window, length - lead - trail)
        rows = hides.any(1).nonzero()[:, 0]  # (R,) the chains that still have something to draw
        start = self._start(hides[rows].int().argmax(1) - lead, length - lead - trail, width)  # (R,)
        chosen = self._next(noise, state.step, rows, hides[rows], lead + start, width)  # (R, L)
        drawing = Drawing(self.temperature, self.top_k, self.top_p)
        ids, log_prob = state.ids.clone(), torch.zeros(chains, dtype=engine.conditionals.dtype)
        for first in sorted({*start.tolist()}):  # chains of one canvas keep step, so this is nearly always one
            these = rows[start == first]
            at, place = chosen[start == first].nonzero(as_tuple=True)  # (M,) each
            seen = window(torch.arange(length), lead, trail, first, width).to(ids.device)
            allowed = canvas.allowed
            drawn = draw(
                engine,
                state.ids[these.to(ids.device)][:, seen],
                at,
                place - first,
                noise.asks(Sampling.DRAW, state.step, these[at], place),
                drawing=drawing,
                allowed=allowed if allowed is None or allowed.ndim == 1 else allowed[seen],
                given=canvas.given_to(these),
            )
            chain = these[at].to(ids.device)
            ids[chain, place.to(ids.device)] = drawn.token
            log_prob = log_prob.to(drawn.log_prob).index_add(0, chain, drawn.log_prob)
        passes = hides.any(1).long()
        return State(ids, canvas, state.step + 1), Info(changes(state.ids, ids), passes, {"log_prob": log_prob})

    def _start(self, place: Tensor, body: int, width: int) -> Tensor:
        """Where the first window that holds a place of the text begins, both counted from the text's first token."""
        stride = self.stride or max(1, self.window // 2)
        turn = (place - width + stride).clamp(min=0) // stride  # ⌈(place + 1 − width) / stride⌉, or 0
        return (turn * stride).clamp(max=body - width)

    def _next(self, noise: Noise, step: int, rows: Tensor, hides: Tensor, first: Tensor, width: int) -> Tensor:
        """(R, L) the places that each of these chains draws next: one, or with a grid all that share its next time."""
        at = torch.arange(hides.shape[1])
        inside = hides & (at >= first[:, None]) & (at < first[:, None] + width)  # (R, L)
        if self.grid is not None:
            uniform = noise.grid(Sampling.TIME, 0, hides.shape[1])[rows]
            turn = reveal_step(schedule("log_linear"), uniform, self.grid).where(inside, torch.tensor(self.grid + 1))
            return inside & (turn == turn.amin(1, keepdim=True))
        which = torch.zeros(len(rows), dtype=torch.long)  # from left to right: the first
        if self.inner == "random":
            which = (noise.chains(Sampling.WHERE, step)[rows] * inside.sum(1)).long()  # uniform among the hidden ones
        return inside & (inside.cumsum(1) - 1 == which[:, None])


def ends(engine: Engine, canvas: Canvas) -> tuple[int, int]:
    """How many special tokens stand before and after the text, in all chains."""
    vocabulary = engine.conditionals.vocabulary
    added = torch.tensor(sorted(vocabulary.special_ids - {canvas.mask_id, vocabulary.unknown_id}), dtype=torch.long)
    special = (torch.isin(canvas.ids, added.to(canvas.ids.device)) & ~canvas.free).all(0).cpu()  # (L,)
    text = (~special).nonzero()[:, 0]
    return int(text[0]), len(special) - 1 - int(text[-1])


def window(positions: Tensor, lead: int, trail: int, first: int, width: int) -> Tensor:
    """The positions that the network is shown: a stretch of the text between the special tokens of both ends."""
    stretch = positions[lead + first : lead + first + width]
    return torch.cat([positions[:lead], stretch, positions[len(positions) - trail :]])
