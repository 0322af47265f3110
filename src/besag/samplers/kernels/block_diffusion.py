"""Block diffusion (BD3-LM): one block after the other from the left, and within a block masked diffusion.

    block of column c = ⌊c / size⌋;   b = the first block in which something is hidden
    x_i ~ p(x_i | what is shown of b, all blocks before it)     for the places i of b that are revealed in this step

Which places of the block those are is one of three things:

    (nothing said)   one, uniformly: the chain rule in a random order within the block
    grid=T           those of the next of T equal steps of time, as in `ancestral`, from one pass
    least=c          all whose likeliest token has at least the probability c, or the surest one, as in `threshold`

What stands after the block, given or not, is not seen: it is hidden from a network that would look at it. So the law is
the product over blocks of what is drawn in each; it is the joint's own where one place is drawn at a time and the
conditionals have one. Places from one pass cost their total correlation, never more than that of a block.

A network trained by the objective `block_diffusion` sees no more than this anyway, and keeps the keys and values of
finished blocks (`besag.conditionals.blocks`): a pass runs the columns of one block, whatever stands before it. Any
other conditionals are asked anew about the whole text. The kernel does not know which: it asks the same questions.

Not to be confused with `semi_ar`, whose window moves on and forgets, and whose network sees masks after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from besag.checks import MOST_PLACES, whole_number
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.noise import Sampling
from besag.samplers.kernel import Canvas, Info, Noise, State, changes, hidden, made, register
from besag.samplers.kernels.decoding import Decoder, fill, foremost, most_hidden
from besag.samplers.kernels.schedules import ENDLESS, checked_grid, reveal_step, schedule
from besag.samplers.kernels.semi_ar import ends

USUAL = 16  # tokens of a block, where neither the network nor anybody else says it


@register
@dataclass(frozen=True)
class BlockDiffusion(Decoder):
    name = "block_diffusion"
    title = "block after block, within a block by masked diffusion or all that is sure enough"
    formula = "x_i ~ p(x_i | what is shown of its block, all blocks before it)"
    law = "the joint, if the conditionals have one, but for places of a block that are revealed in one pass"
    passes = "at most n for n hidden places; at most min(n, T) a block with grid=T"
    ends = True
    cite = ("arriola2025", "wu2025")
    aliases = ("bd3lm",)

    size: Annotated[int | None, "tokens of a block; if none, those the network was trained with, or 16"] = None
    grid: Annotated[int | None, "steps of time that fill a block; if none, one place at a time"] = None
    least: Annotated[float | None, "reveal all places that are so sure, in place of times"] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is not None:
            whole_number(self.size, "size", right="give how many tokens a block has, at least 1", most=MOST_PLACES)
        if self.grid is not None:
            checked_grid(self.grid, ENDLESS)
        if self.least is not None and not 0 <= self.least <= 1:
            raise BesagError(f"least={quoted(self.least)}: a probability from 0 (a block at once) to 1 (one by one)")
        if self.grid is not None and self.least is not None:
            raise BesagError(
                f"grid={self.grid} reveals in the order of time, and least={self.least} by how sure the model is: "
                "give one of them"
            )

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        blocks = -(-length // self.size) if self.size is not None else n
        return made(n if self.grid is None else min(n, blocks * self.grid), steps) * (length + source)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> State:
        own = _own_size(engine)
        if self.size is not None and own not in (None, self.size):
            raise BesagError(
                f"size={self.size}: {engine.conditionals.name!r} was trained in blocks of {own} tokens, and sees "
                "no others. Leave size out"
            )
        state: State = super().init(engine, noise, canvas)
        return state

    def steps(self, canvas: Canvas) -> int:
        return most_hidden(canvas)

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        hides = hidden(state)  # (C, L)
        block = torch.arange(hides.shape[1], device=hides.device) // self.block_size(engine)
        now = block[hides.int().argmax(1)].where(hides.any(1), -1)  # (C,) the block that each chain is at
        inside = hides & (block == now[:, None])
        shown = self._shown(engine, state, block > now[:, None])
        asked = inside if self.least is not None else self._next(noise, inside)
        token, chosen = state.ids, asked
        log_prob, passes = torch.zeros(len(hides)), torch.zeros(len(hides), dtype=torch.long)
        for number in sorted({*now.tolist()} - {-1}):  # chains of one block together: what stands before it is kept so
            these = asked & (now == number)[:, None]
            measure = None if self.least is None else "confidence"
            answers = fill(engine, noise, state, shown, these, self.pick, self.how, measure=measure)
            if self.least is not None:
                assert answers.turn is not None
                sure = (-answers.turn).exp() >= self.least  # a turn is −log of the likeliest's probability
                these = (these & sure) | foremost(answers.turn, these, 1)
                chosen = these | (chosen & (now != number)[:, None])
            token = torch.where(these, answers.token, token)
            log_prob = log_prob.to(answers.log_prob) + answers.log_prob.masked_fill(~these, 0).sum(1)
            passes = passes + answers.passes
        told = {"revealed": chosen.sum(1), "block": now, "log_prob": log_prob}
        return State(token, state.canvas, state.step + 1), Info(changes(state.ids, token), passes, told)

    def block_size(self, engine: Engine) -> int:
        """Return the number of tokens of a block."""
        return self.size or _own_size(engine) or USUAL

    def _shown(self, engine: Engine, state: State, later: Tensor) -> Tensor:
        """(C, L) what is asked: with everything hidden that stands after the block, but special tokens at the ends."""
        lead, trail = ends(engine, state.canvas)
        text = torch.arange(later.shape[1], device=later.device)
        text = (text >= lead) & (text < later.shape[1] - trail)
        return state.ids.masked_fill(later & text, state.canvas.mask_id)

    def _next(self, noise: Noise, inside: Tensor) -> Tensor:
        """(C, L) the places of its block that a chain reveals next: all that share its next time."""
        grid = self.grid or ENDLESS
        uniform = noise.grid(Sampling.TIME, 0, inside.shape[1])
        turn = reveal_step(schedule("log_linear"), uniform, grid).to(inside.device)
        turn = turn.where(inside, torch.tensor(grid + 1, device=inside.device))
        return inside & (turn == turn.amin(1, keepdim=True))


def _own_size(engine: Engine) -> int | None:
    """How many tokens a block has for the network, if it was trained in blocks."""
    blocks = getattr(engine.conditionals, "blocks", None)
    return None if blocks is None else int(blocks.length)
