"""Iterative refinement: all places at once, from the whole sequence as it stands, again and again.

    x_i ← argmax or draw of p(x_i | x)     for all free i at once, x the sequence of the step before, nothing hidden

The network sees the token it is asked about, as a denoiser does: SUNDAE starts from uniform noise (`start="noise"`) and
is trained to repair it; PaDIR also starts from masks. A network trained on masks alone was never asked about a token
that it sees. Its answer there is no conditional law of the text, leans towards what it sees, and few steps later
nothing moves. `hide=True` asks each place in a copy of the sequence where it is hidden, p(x_i | x_∖i), at one pass a
place: the question that such a network was trained on, and the only one that an exact law answers. Moved all at once,
places may then chase each other in a cycle.

One step draws from Π_i p(x_i | x): a product, whatever the conditionals. So a joint whose places depend on one another
is in general not invariant, not even with `hide` and its own conditionals. After T steps with `pick="sample"` the law
is that of the start, moved T times by this product.

With `pick="argmax"` a step is a function of the sequence: a chain that did not change never will, so it has ended and
costs no further pass. A draw that changes nothing says nothing about the next, so `pick="sample"` makes all steps.

`share` below 1: after the first step only the ⌈share · n⌉ places whose likeliest token is least likely, in the pass at
hand, are updated (in the manner of SUNDAE's argmax-unrolled decoding). `remask_stutter`: a token equal to its left
neighbour is hidden before it is predicted again, and always updated; those left after the last step are predicted once
more, all of them in one pass, and nothing else is.

`score` is the sum over free places of the log-probability that the token had when it was last taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor

from besag.checks import MOST_STEPS, whole_number
from besag.engine import Engine
from besag.errors import BesagError
from besag.noise import Sampling
from besag.samplers.kernel import AnyState, Canvas, Info, Noise, changes, made, refuse_no_places, register
from besag.samplers.kernels.decoding import Decoder, Pick, fill, foremost


class RefineState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    log_prob: Tensor  # (C, L) of each token when it was last taken; 0 where none was
    moving: Tensor  # (C,) bool: may it still change?


@register
@dataclass(frozen=True)
class Refine(Decoder):
    name = "refine"
    title = "all places at once from the whole sequence, again and again"
    formula = "x' ~ Π_i p(x_i | x), nothing hidden"
    law = "the start, moved T times by a product of conditionals; no joint is its law"
    passes = "at most T in all, 1 a step (hide=True: n times that)"
    ends = True
    cite = ("savinov2022", "li2024")
    aliases = ("sundae", "padir")

    iterations: Annotated[int, "steps"] = 10
    start: Annotated[Literal["noise", "mask", "given"], "random tokens, masks, or the text itself"] = "noise"
    pick: Annotated[Pick, "draw tokens, or take the likeliest"] = field(default="argmax", kw_only=True)
    share: Annotated[float, "of the places that are updated after the first step"] = 1.0
    remask_stutter: Annotated[bool, "hide a token that repeats its left neighbour"] = False
    hide: Annotated[bool, "hide each place that is asked about, at one pass a place"] = False

    @property
    def effective_law(self) -> str:
        return self.law if self.start == "noise" else super().effective_law

    def __post_init__(self) -> None:
        right = "make at least 1, which predicts every place once"
        whole_number(self.iterations, "iterations", right=right, most=MOST_STEPS)
        if not 0 < self.share <= 1:
            raise BesagError(f"share={self.share!r}: the share of places to update is above 0 and at most 1")
        super().__post_init__()

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        passes = made(self.iterations + self.remask_stutter, steps) * (n if self.hide else 1)
        return passes * (length + source)

    def check(self, canvas: Canvas) -> None:
        refuse_no_places(canvas)  # what is there already can be refined

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> RefineState:
        ids = canvas.ids.clone()
        if self.start == "mask":
            ids = ids.masked_fill(canvas.free, canvas.mask_id)
        elif self.start == "noise":
            ids = torch.where(canvas.free, _uniform(engine, noise, canvas), ids)
        moving = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
        return RefineState(ids, canvas, 0, torch.zeros(ids.shape, device=ids.device), moving)

    def step(self, engine: Engine, noise: Noise, state: RefineState) -> tuple[RefineState, Info]:
        canvas, stutters = state.canvas, self._stutters(state)
        once_more = state.step >= self.iterations  # only stutters, after the last step
        asked = (stutters if once_more else canvas.free) & state.moving[:, None]  # (C, L)
        unrolls = self.share < 1 and state.step > 0 and not once_more
        answers = fill(
            engine,
            noise,
            state,
            state.ids.masked_fill(stutters, canvas.mask_id),
            asked,
            self.pick,
            self.how,
            measure="confidence" if unrolls else None,
            alone=self.hide,
        )
        chosen = asked
        if unrolls and answers.turn is not None:
            places = canvas.free.cpu().sum(1)
            count = (places.double() * self.share - 1e-9).ceil().long()  # 7 of 100 places at 0.07, not 8
            chosen = foremost(-answers.turn, asked, count.to(asked.device)) | (stutters & asked)
        ids = torch.where(chosen, answers.token, state.ids)
        log_prob = torch.where(chosen, answers.log_prob, state.log_prob)
        changed = changes(state.ids, ids)
        moving = state.moving & (changed > 0) if self.pick == "argmax" else state.moving
        info = Info(changed, answers.passes, {"score": log_prob.sum(1)})
        return RefineState(ids, canvas, state.step + 1, log_prob, moving), info

    def steps(self, canvas: Canvas) -> int:
        return self.iterations + self.remask_stutter

    def done(self, state: AnyState) -> bool:
        assert isinstance(state, RefineState)
        if state.step == self.iterations:  # is any stutter left that is predicted once more?
            return not bool((self._stutters(state) & state.moving[:, None]).any())
        return state.step > self.iterations or not bool(state.moving.any())

    def _stutters(self, state: RefineState) -> Tensor:
        """(C, L) the free places whose token is the same as that before it, if these are looked for."""
        same = torch.zeros_like(state.canvas.free)
        if self.remask_stutter:
            same[:, 1:] = state.ids[:, 1:] == state.ids[:, :-1]
        return same & state.canvas.free


def _uniform(engine: Engine, noise: Noise, canvas: Canvas) -> Tensor:
    """(C, L) tokens drawn uniformly from those that are allowed at each place."""
    length = canvas.ids.shape[1]
    allowed = torch.ones(engine.conditionals.width, dtype=torch.bool) if canvas.allowed is None else canvas.allowed
    allowed = allowed.cpu()
    listed = allowed.byte().argsort(dim=-1, descending=True, stable=True)  # (V,) or (L, V) the allowed ones first
    count = allowed.sum(-1)  # () or (L,)
    index = torch.minimum((noise.grid(Sampling.START, 0, length) * count).long(), count - 1)  # (C, L)
    tokens: Tensor = listed[index] if listed.ndim == 1 else listed[torch.arange(length), index]
    return tokens.to(canvas.ids.device)
