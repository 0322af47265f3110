"""One hidden place at a time, in any order: the chain rule, drawn.

    i_k = the next place, from the tokens shown so far and the model's rows at the hidden places
    x_{i_k} ~ p(x_{i_k} | what was given, x_{i_1} … x_{i_{k−1}})

The place never depends on the token that is drawn there. So for every order the probability of a filling is the product
of the probabilities of its tokens, and these products sum to one. If the conditionals are those of a joint law, each
order draws from it, given what is shown, exactly. A network's are not: each order then has a law of its own, the one
that the score `chain` computes. `log_prob` of a step is the log-probability of its token, so the sum over the steps is
log p of the sample (with `order="random"`: given the order that was drawn).

Not to be confused with drawing a token everywhere and keeping the one that came out most probable: there the place
depends on the draw, likely tokens are favoured, and even a true joint is missed.

`reveal` draws any number of places from one pass; more than one is the kernel `grouped`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import torch
from torch import Tensor

from besag.engine import Engine
from besag.noise import Sampling
from besag.samplers.drawing import Drawing
from besag.samplers.kernel import Canvas, Info, Noise, State, changes, hidden, made, register
from besag.samplers.kernels.decoding import (
    MEASURES,
    Decoder,
    Pick,
    fill,
    foremost,
    most_hidden,
)

Order = Literal["left_to_right", "right_to_left", "random", "entropy", "margin", "confidence"]
ORDERS: tuple[Order, ...] = get_args(Order)


class Revealing(Decoder):
    """What `ordered` and `grouped` share: the next `together` places of an order, in each step."""

    order: Order

    @property
    def together(self) -> int:
        return 1

    @property
    def effective_law(self) -> str:
        return self.law if self.order == "random" else super().effective_law

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return made(-(-n // self.together), steps) * (length + source)

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        return reveal(engine, noise, state, self.order, self.together, self.pick, self.how)

    def steps(self, canvas: Canvas) -> int:
        return -(-most_hidden(canvas) // self.together)


@register
@dataclass(frozen=True)
class Ordered(Revealing):
    name = "ordered"
    title = "one hidden place at a time, in a chosen order"
    formula = "x_i ~ p(x_i | all that is shown), i the next in the order"
    law = "the chain rule in this order; the joint, for every order, if the conditionals have one"
    passes = "n for n hidden places, 1 a step"
    ends = True
    cite = ("uria2014", "shen2023")

    order: Annotated[Order, "which place is next"] = "left_to_right"


def reveal(
    engine: Engine, noise: Noise, state: State, order: Order, size: int, pick: Pick, how: Drawing
) -> tuple[State, Info]:
    """Draw the next `size` hidden places of each chain, all from one pass; fewer where fewer are hidden."""
    hides = hidden(state)  # (C, L)
    if order in MEASURES:
        answers = fill(engine, noise, state, state.ids, hides, pick, how, measure=order)
        assert answers.turn is not None
        chosen = foremost(answers.turn, hides, size)
    else:
        chosen = foremost(_turns(noise, state, order), hides, size)
        answers = fill(engine, noise, state, state.ids, chosen, pick, how)
    ids = torch.where(chosen, answers.token, state.ids)
    more = {"log_prob": answers.log_prob.masked_fill(~chosen, 0).sum(1)}
    return State(ids, state.canvas, state.step + 1), Info(changes(state.ids, ids), answers.passes, more)


def _turns(noise: Noise, state: State, order: Order) -> Tensor:
    """(C, L) when each place has its turn, for orders that ask nobody."""
    count, length = state.ids.shape
    turn = torch.arange(length).expand(count, length)
    if order == "right_to_left":
        turn = turn.flip(1)
    elif order == "random":  # anew each step, so the next place is uniform among those still hidden
        turn = noise.grid(Sampling.WHERE, state.step, length).argsort(1).argsort(1)
    return turn.to(state.ids.device)
