"""Mask-predict: predict everything, then again and again what was least sure.

    step 0            hide all n free places, predict them all at once
    step t = 1 … T−1  hide the n_t least probable tokens, predict those anew, given all others
                      n_t = ⌊n (1 − t/T)⌋ (`schedule="linear"`)   or   ⌊n cos(π t / 2T)⌋ (`"cosine"`)

T is at most n, so that n_t is never below 1.

A token keeps the probability that it had when it was predicted; only those predicted anew get a new one. `score` is the
sum of these log-probabilities over the free places. It ranks fillings of one text, as its authors rank lengths. It is
not the log-probability of anything: each term has a context of its own, and some of these tokens are gone.

Not a sampler. With `pick="argmax"` it is a search whose answer is one filling. With `pick="sample"` tokens are drawn,
but which of them stay depends on how probable they came out. So likely tokens are kept too often, and its law is not
the joint even where there is one. `ordered` draws from it.

All free places are predicted, also those where a token stands at first. A chain makes T steps: `iterations`, or, if
none are named, 10 or as many as it has free places, if these are fewer. Of equally probable tokens the leftmost is
hidden first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor

from besag.checks import MOST_PLACES, whole_number
from besag.engine import Engine
from besag.errors import BesagError
from besag.results.words import counted
from besag.samplers.kernel import AnyState, Canvas, Info, Noise, changes, made, refuse_no_places, register
from besag.samplers.kernels.decoding import Decoder, Pick, fill, foremost

USUAL = 10  # iterations in the paper


class MaskPredictState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    log_prob: Tensor  # (C, L) of each token when it was predicted; 0 where none was


@register
@dataclass(frozen=True)
class MaskPredict(Decoder):
    name = "mask_predict"
    title = "all places at once, then the least sure ones again and again"
    formula = "x_K ~ Π_{i∈K} p(x_i | x_∖K), K the n_t least probable"
    law = "none: a search for a probable filling, also when tokens are drawn"
    passes = "T in all, 1 a step"
    ends = True
    cite = ("ghazvininejad2019", "chang2022")

    iterations: Annotated[int | None, "steps; if none, 10 or the free places"] = None
    schedule: Annotated[Literal["linear", "cosine"], "how many places are hidden again"] = "linear"
    pick: Annotated[Pick, "draw tokens, or take the likeliest"] = field(default="argmax", kw_only=True)

    def __post_init__(self) -> None:
        if self.iterations is not None:
            right = "make at least 1, which predicts every place once"
            whole_number(self.iterations, "iterations", right=right, most=MOST_PLACES)
        super().__post_init__()

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return made(min(n, USUAL) if self.iterations is None else self.iterations, steps) * (length + source)

    def check(self, canvas: Canvas) -> None:
        refuse_no_places(canvas)
        fewest = int(canvas.free.sum(1).min())
        if self.iterations is not None and self.iterations > fewest:
            raise BesagError(
                f"mask_predict with iterations={self.iterations} and {counted(fewest, 'free place')}: fewer places "
                f"are predicted anew each time, so make at most one iteration a place: iterations={fewest} or "
                "less"
            )

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> MaskPredictState:
        return MaskPredictState(canvas.ids.clone(), canvas, 0, torch.zeros(canvas.ids.shape, device=canvas.ids.device))

    def step(self, engine: Engine, noise: Noise, state: MaskPredictState) -> tuple[MaskPredictState, Info]:
        canvas = state.canvas
        hide = foremost(state.log_prob, canvas.free, self._sizes(canvas, state.step))  # (C, L)
        shown = state.ids.masked_fill(hide, canvas.mask_id)
        answers = fill(engine, noise, state, shown, hide, self.pick, self.how)
        ids = torch.where(hide, answers.token, state.ids)
        log_prob = torch.where(hide, answers.log_prob, state.log_prob)
        info = Info(changes(state.ids, ids), answers.passes, {"score": log_prob.sum(1)})
        return MaskPredictState(ids, canvas, state.step + 1, log_prob), info

    def steps(self, canvas: Canvas) -> int:
        return int(self._totals(canvas).max()) if self.iterations is None else self.iterations

    def done(self, state: AnyState) -> bool:
        return state.step >= self.steps(state.canvas)  # between steps nothing is hidden: that tells nothing

    def _totals(self, canvas: Canvas) -> Tensor:
        """(C,) T of each chain, which knows nothing of the others. Where the chains are: nothing waits for them."""
        places = canvas.free.sum(1)
        return places.clamp(max=USUAL) if self.iterations is None else torch.full_like(places, self.iterations)

    def _sizes(self, canvas: Canvas, step: int) -> Tensor:
        """(C,) how many places are hidden at this step: n_t, and none after the last."""
        places, total = canvas.free.sum(1), self._totals(canvas)
        if self.schedule == "linear":
            size = places * (total - step) // total  # in whole numbers, so that ⌊ ⌋ is exact
        else:
            share = torch.cos(step / total.double() * (math.pi / 2))
            size = (places * share + 1e-9).floor().long()  # n/2 at t/T = 2/3 must not be lost to rounding
        return torch.where(step < total, size, 0)
