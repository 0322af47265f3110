"""Confidence threshold: in one pass, all hidden places that the model is sure enough of.

    c_i = max_v p(x_i = v | what is shown)          how sure the model is of a hidden place
    S   = {i : c_i ≥ least}, or the surest place alone where there is none
    x_i ~ p(x_i | what is shown)     for all i ∈ S, independently

The fewer places are open, the fewer passes: a sentence that is certain takes one, and no sentence more than it has
places. If k places go together, each with c_i > 1 − 1/(k + 1), their likeliest tokens are also the likeliest of their
joint: together they have 1 − k/(k + 1) at least, and whatever differs somewhere less. Below, nothing is promised.
With `least=1` it is `ordered` by confidence, but for places that are certain.

Not to be confused with `entropy_bound`, which bounds what a set loses together, not each place for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch

from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.samplers.kernel import Canvas, Info, Kernel, Noise, State, changes, hidden, register
from besag.samplers.kernels.decoding import (
    SEARCH,
    Pick,
    drawing,
    fill,
    foremost,
    most_hidden,
    never_the_mask,
    refuse_nothing_hidden,
)


@register
@dataclass(frozen=True)
class Threshold(Kernel):
    name = "threshold"
    title = "all hidden places at a time that the model is sure enough of"
    formula = "x_i ~ p(x_i | all that is shown) for all i ∈ S, S = {i : max_v p(x_i = v | shown) ≥ least}"
    law = "the joint, if the conditionals have one, but for the total correlation of its sets, 0 for sets of one"
    passes = "1 a step, at most n for n hidden places"
    ends = True
    cite = ("wu2025",)

    least: Annotated[float, "how probable the likeliest token of a place must be"] = 0.9
    pick: Annotated[Pick, "draw tokens, or take the likeliest"] = "sample"
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    @property
    def effective_law(self) -> str:
        return SEARCH if self.pick == "argmax" else self.law

    def __post_init__(self) -> None:
        if not 0 <= self.least <= 1:
            raise BesagError(f"least={quoted(self.least)}: a probability from 0 (all at once) to 1 (one by one)")
        drawing(self.pick, self.temperature, self.top_k, self.top_p)

    def check(self, canvas: Canvas) -> None:
        refuse_nothing_hidden(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> State:
        return State(canvas.ids.clone(), never_the_mask(canvas, engine.conditionals.width), 0)

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        hides = hidden(state)  # (C, L)
        how = drawing(self.pick, self.temperature, self.top_k, self.top_p)
        answers = fill(engine, noise, state, state.ids, hides, self.pick, how, measure="confidence")
        assert answers.turn is not None  # −log c_i
        chosen = (hides & ((-answers.turn).exp() >= self.least)) | foremost(answers.turn, hides, 1)
        ids = torch.where(chosen, answers.token, state.ids)
        more = {"revealed": chosen.sum(1), "log_prob": answers.log_prob.masked_fill(~chosen, 0).sum(1)}
        return State(ids, state.canvas, state.step + 1), Info(changes(state.ids, ids), answers.passes, more)

    def steps(self, canvas: Canvas) -> int:
        return most_hidden(canvas)
