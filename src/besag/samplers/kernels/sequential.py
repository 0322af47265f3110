"""Sequential prompting (SAP, Patel et al. 2023): a model that sees both sides continues a prompt, a token at a time.

    x_k ~ p(x_k | x_1 … x_{k−1}, w fresh masks),   the first of the w; then it is shown, and w masks follow anew

The idea: the model is asked for what comes next as a denoiser, by masks at the end of the text so far. Of its answer
the first token alone is kept and becomes part of the prompt, and the rest is thrown away and asked again. So what is
shown is the prompt, the tokens kept so far, and always the same number of fresh masks (`fresh`), whatever the number of
places that are still to be filled. The model therefore never knows how long the text will be: the law of the first k
tokens is the same for every length, as it is of a causal model, and it can be cut wherever its answer ends. What stands
to the right of the place in the text is not shown, as in any prompt.

For every w the products of the probabilities sum to one over texts of one length. Even where the conditionals are those
of a joint of n places this is another law, since the model is asked about texts of other lengths.

Not to be confused with `ordered`, left to right: there all masks of the text are shown, those on the right and what
stands beyond them among them, so the model knows how much is still to come.

The paper asks T5, whose one sentinel stands for any number of tokens, and keeps the first word; a mask of BERT stands
for one token, so here several stand for what is to come, and one token is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch

from besag.checks import MOST_PLACES, whole_number
from besag.engine import Engine
from besag.errors import TooLong
from besag.noise import Sampling
from besag.samplers.drawing import draw
from besag.samplers.kernel import Canvas, Info, Noise, State, changes, hidden, made, register
from besag.samplers.kernels.decoding import Decoder, hidden_at_first, most_hidden
from besag.samplers.kernels.semi_ar import ends


@register
@dataclass(frozen=True)
class Sequential(Decoder):
    name = "sequential"
    title = "a prompt continued token by token, each asked with fresh masks behind it (SAP)"
    formula = "x_k ~ p(x_k | x_<k, w fresh masks)"
    law = "its own: the next token given the text so far and w masks, whatever the length"
    passes = "n for n hidden places, 1 a step"
    ends = True
    cite = ("patel2023",)
    aliases = ("sap",)

    fresh: Annotated[int, "masks at the end of the text so far, of which the first is filled"] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.fresh, "fresh", right="show at least 1 mask, the one that is filled", most=MOST_PLACES)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        passes = made(n, steps)  # of sequences that end with the masks; the last mask precedes the end of the text
        return passes * (length - 1 + self.fresh + source) - passes * (passes - 1) // 2

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> State:
        limit, (_, trail) = engine.conditionals.max_length, ends(engine, canvas)
        last = int(hidden_at_first(canvas).any(0).nonzero().max())
        if limit is not None and last + self.fresh + trail > limit:
            raise TooLong(
                f"fresh={self.fresh} masks after {last} tokens and before {trail} at the end are "
                f"{last + self.fresh + trail}, and {engine.conditionals.name!r} sees {limit}: give a shorter prompt, "
                "fewer examples, or fewer masks"
            )
        state: State = super().init(engine, noise, canvas)
        return state

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        canvas, hides = state.canvas, hidden(state).cpu()
        _, trail = ends(engine, canvas)
        chains, length = hides.shape
        rows = hides.any(1).nonzero()[:, 0]  # (R,) the chains that still have something to draw
        next_place = hides[rows].int().argmax(1)  # (R,)
        ids, log_prob = state.ids.clone(), torch.zeros(chains, dtype=engine.conditionals.dtype, device=state.ids.device)
        for place in sorted({*next_place.tolist()}):  # chains of one canvas keep step, so this is nearly always one
            these = rows[next_place == place]
            own = state.ids[these.to(ids.device)]
            masks = own.new_full((len(these), self.fresh), canvas.mask_id)
            at = torch.full_like(these, place)
            drawn = draw(
                engine,
                torch.cat([own[:, :place], masks, own[:, length - trail :]], 1),  # (R, place + w + trail)
                torch.arange(len(these)),
                at,
                noise.asks(Sampling.DRAW, state.step, these, at) if self.pick == "sample" else None,
                drawing=self.how,
                allowed=canvas.allowed,
                given=canvas.given_to(these),
            )
            chain = these.to(ids.device)
            ids[chain, place] = drawn.token
            log_prob = log_prob.to(drawn.log_prob).index_add(0, chain, drawn.log_prob)
        passes = hides.any(1).long()
        return State(ids, canvas, state.step + 1), Info(changes(state.ids, ids), passes, {"log_prob": log_prob})

    def steps(self, canvas: Canvas) -> int:
        return most_hidden(canvas)
