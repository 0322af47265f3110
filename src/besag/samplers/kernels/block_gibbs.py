"""Block Gibbs: hide k places K, draw them anew given the rest.

    x_K ~ p(x_K | x_∖K)        K uniform among the free places (`where="random"`), or k neighbours (`"adjacent"`)

A masked model says p(x_i | x_∖K), one place at a time. `inner` is how k tokens are made of that:

    independent   Π_{i∈K} p(x_i | x_∖K): one pass, what a parallel decoder does. Even a true joint π is not invariant:
                  one step loses KL(π ‖ πP_K) = E[TC(X_K | X_∖K)], the total correlation of the block given the rest.
    sequential    Π_t p(x_{σ(t)} | x_∖K, x_{σ(1)} … x_{σ(t−1)}), the rest of K hidden, σ uniform: k passes. For the
                  answers of a joint law this is its block Gibbs step, and the law is invariant.
    ag            pairs alone: the Arnold-Gokhale joint of the two places over the likeliest tokens of each
                  (`pair_law.py`). With all tokens as candidates it keeps a joint law; with fewer it cannot.

Where the model's answers belong to no joint, each of these is a chain with a stationary law of its own.

Metropolis correction of `ag` (`metropolis=True`). The target is m(x_K | x_∖K), the law that `sequential` draws the pair
from, both orders averaged; for a true joint that is its conditional. Candidates and q depend on x_∖K alone, so q is an
independence proposal: accept with min(1, m(new) q(old) / (m(old) q(new))). A pair of which a token is no candidate has
q(old) = 0, the way back is closed, and the proposal is rejected. So that such pairs are left again, the step is drawn
by `sequential` with probability ESCAPE, decided before anything is looked at: both moves keep m, hence so does their
mixture. (To escape only where the old pair is no candidate would not: nothing would lead back there.) A pair that is
still hidden has no old tokens to weigh; it is drawn by `sequential` too. The numbers that m needs are among those that
q was made of, so the correction costs no pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import torch
from torch import Tensor

from besag.checks import MOST_CANDIDATES, MOST_PLACES, whole_number
from besag.engine import Engine
from besag.errors import BesagError
from besag.noise import Sampling
from besag.results.words import counted
from besag.samplers.drawing import Drawing, draw
from besag.samplers.kernel import SWEEPS, Canvas, Info, Kernel, Noise, State, changes, register
from besag.samplers.kernels.pair_law import PairLaws, pair_laws

Moved: TypeAlias = tuple[Tensor, Tensor, dict[str, Tensor]]  # ids (C, L), passes (C,), and what is told of the step

ESCAPE = 0.1  # share of the corrected steps that are drawn by `sequential`


@register
@dataclass(frozen=True)
class BlockGibbs(Kernel):
    name = "block_gibbs"
    title = "several places at a time, drawn given all others"
    formula = "x_K ~ p(x_K | x_∖K)"
    law = "the joint, if the answers have one, by sequential and corrected ag; else the step's own stationary law"
    passes = "independent 1 a step, sequential `size`, ag 2·candidates + 1"
    cite = ("li2024", "arnold1998", "torroba2023")

    size: Annotated[int, "places of a block"] = 2
    where: Annotated[Literal["random", "adjacent"], "which places: any, or neighbours"] = "random"
    inner: Annotated[Literal["independent", "sequential", "ag"], "how the tokens of a block are drawn"] = "sequential"
    candidates: Annotated[int, "tokens of each place of an ag pair"] = 20
    metropolis: Annotated[bool, "correct ag pairs by Metropolis"] = False
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    def __post_init__(self) -> None:
        whole_number(self.size, "size", right="a block has at least 1 place", most=MOST_PLACES)
        if self.inner == "ag" and self.size != 2:
            raise BesagError(
                f"size={self.size!r}: inner='ag' draws pairs, size=2; 'sequential' draws blocks of any size"
            )
        if self.metropolis and self.inner != "ag":
            raise BesagError(f"metropolis=True corrects inner='ag'; inner={self.inner!r} proposes nothing")
        right = "a place needs at least 1 token that may stand there"
        whole_number(self.candidates, "candidates", right=right, most=MOST_CANDIDATES)
        Drawing(self.temperature, self.top_k, self.top_p)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        passes = {"independent": 1, "sequential": self.size, "ag": 2 * self.candidates + 1}[self.inner]
        if self.metropolis:
            passes = max(passes, self.size)  # a step that cannot be corrected draws one place after the other
        return (SWEEPS * n if steps is None else steps) * passes * (length + source)

    def check(self, canvas: Canvas) -> None:
        super().check(canvas)
        fewest = int(canvas.free.sum(1).min())
        if fewest < self.size:
            raise BesagError(
                f"size={self.size}: a block cannot be larger than the {counted(fewest, 'free place')} "
                f"of a text; give size={fewest}, or a text with more masks"
            )

    def step(self, engine: Engine, noise: Noise, state: State) -> tuple[State, Info]:
        block = self._block(noise, state.canvas, state.step)  # (C, k) on the host
        if self.inner == "ag":
            move = self._corrected if self.metropolis else self._paired
            ids, passes, more = move(engine, noise, state, block)
        elif self.inner == "sequential":
            ids, passes, more = self._sequential(engine, noise, state, block), torch.full((len(block),), self.size), {}
        else:
            ids, passes, more = self._independent(engine, noise, state, block), torch.ones(len(block)).long(), {}
        return State(ids, state.canvas, state.step + 1), Info(changes(state.ids, ids), passes, more)

    def _block(self, noise: Noise, canvas: Canvas, step: int) -> Tensor:
        """(C, k) the places drawn in this step, in a uniformly random order."""
        free = canvas.free.cpu()  # (C, L)
        if self.where == "adjacent":  # neighbours among the free places: clamped ones between them are passed over
            number = free.cumsum(1) - 1  # (C, L) of each free place among the free ones
            runs = free.sum(1) - self.size + 1
            start = (noise.chains(Sampling.START, step) * runs).long()[:, None]  # (C, 1)
            free = free & (number >= start) & (number < start + self.size)
        height = noise.grid(Sampling.WHERE, step, free.shape[1]).masked_fill(~free, 2.0)
        return height.argsort(1)[:, : self.size]

    def _independent(self, engine: Engine, noise: Noise, state: State, block: Tensor) -> Tensor:
        row = torch.arange(len(block)).repeat_interleave(self.size)
        drawn = self._draw(engine, noise, state, _hide(state, block), row, block.flatten())
        return state.ids.scatter(1, block.to(state.ids.device), drawn.view(block.shape))

    def _sequential(self, engine: Engine, noise: Noise, state: State, block: Tensor) -> Tensor:
        row, ids = torch.arange(len(block)), _hide(state, block)
        for place in block.unbind(1):  # (C,)
            drawn = self._draw(engine, noise, state, ids, row, place)
            ids = ids.scatter(1, place.to(ids.device)[:, None], drawn[:, None])
        return ids

    def _draw(self, engine: Engine, noise: Noise, state: State, shown: Tensor, row: Tensor, place: Tensor) -> Tensor:
        uniform = noise.asks(Sampling.DRAW, state.step, row, place)
        drawing, canvas = Drawing(self.temperature, self.top_k, self.top_p), state.canvas
        return draw(
            engine, shown, row, place, uniform, drawing=drawing, allowed=canvas.allowed, given=canvas.given
        ).token

    def _paired(self, engine: Engine, noise: Noise, state: State, block: Tensor) -> Moved:
        laws, pair = self._propose(engine, noise, state, block)
        ids = state.ids.scatter(1, block.to(state.ids.device), pair)
        return ids, torch.full((len(ids),), laws.passes), {"lost": laws.lost}

    def _corrected(self, engine: Engine, noise: Noise, state: State, block: Tensor) -> Moved:
        ids, passes = state.ids.clone(), torch.full((len(block),), self.size)
        accepted, lost = torch.ones(len(block), dtype=torch.float64), torch.zeros(len(block), dtype=torch.float64)
        hidden = (_tokens(state, block) == state.canvas.mask_id).any(1).cpu()
        escapes = (noise.chains(Sampling.EXTRA, state.step) < ESCAPE) | hidden  # (C,)
        which, at = _numbers(escapes, ids.device)
        if len(which):
            some = State(state.ids[at], state.canvas.rows(at), state.step)
            ids[at] = self._sequential(engine, noise.rows(which), some, block[which])
        which, at = _numbers(~escapes, ids.device)
        if len(which):
            some = State(state.ids[at], state.canvas.rows(at), state.step)
            laws, pair = self._propose(engine, noise.rows(which), some, block[which])
            uniform = noise.rows(which).chains(Sampling.ACCEPT, state.step)
            accept = _accept(laws, _tokens(some, block[which]), pair, uniform)
            moved = some.ids.scatter(1, block[which].to(ids.device), pair)
            ids[at] = torch.where(accept.to(ids.device)[:, None], moved, some.ids)
            passes[which], accepted[which], lost[which] = laws.passes, accept.double().cpu(), laws.lost.cpu()
        return ids, passes, {"accepted": accepted, "escaped": escapes.double(), "lost": lost}

    def _propose(self, engine: Engine, noise: Noise, state: State, block: Tensor) -> tuple[PairLaws, Tensor]:
        """The laws of the pairs and a pair of tokens drawn from each, (C, 2), as the block names the places."""
        row, (first, second) = torch.arange(len(block)), block.unbind(1)
        laws = pair_laws(
            engine,
            state.ids,
            row,
            first,
            second,
            candidates=self.candidates,
            allowed=state.canvas.allowed,
            drawing=Drawing(self.temperature, self.top_k, self.top_p),
            given=state.canvas.given,
        )
        return laws, torch.stack(laws.draw(noise.asks(Sampling.DRAW, state.step, row, first)), 1)


def _numbers(chosen: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """The numbers of the chosen chains, (C,) bool, on the host and on the device."""
    which = chosen.nonzero()[:, 0]
    return which, which.to(device)


def _hide(state: State, block: Tensor) -> Tensor:
    """(C, L) with the block hidden."""
    return state.ids.scatter(1, block.to(state.ids.device), state.canvas.mask_id)


def _tokens(state: State, block: Tensor) -> Tensor:
    """(C, k) what stands in the block."""
    return state.ids.gather(1, block.to(state.ids.device))


def _accept(laws: PairLaws, old: Tensor, new: Tensor, uniform: Tensor) -> Tensor:
    """(C,) does the new pair, (C, 2), replace the old one? By their weights m/q, and only if there is a way back."""
    log_weight = (laws.log_order - laws.log_q).flatten(1)  # (C, k²) of m/q
    here, there = laws.cell(*old.unbind(1)), laws.cell(*new.unbind(1))  # (C,)
    log_ratio = (log_weight.gather(1, there[:, None]) - log_weight.gather(1, here.clamp_min(0)[:, None]))[:, 0]
    return (uniform.to(log_ratio.device).log() < log_ratio) & (here >= 0)
