"""Masked diffusion whose tokens have schedules of their own (DiffusionBERT), with the posterior that goes with them.

    α_v(t) = 1 − t − b_v sin(πt),     b_v = λ h_v,  h_v = 1 − H̄/H(v),  H(v) = −log of v's share of the corpus

(H̄ the mean of H over the corpus; b is cut off at ±0.9/π, so that every α_v falls.) A token that says more is masked
earlier, so it is revealed later. That a place is *still* masked at t then says something about its token: by Bayes

    μ_v ∝ p_v (1 − α_v(t)),     revealed as v, from t to s, with probability  μ_v (α_v(s) − α_v(t)) / (1 − α_v(t))

and masked with the rest, p_v the probability of v given what is shown. The published code reveals with the
probability of a common schedule, (t − s)/t, whatever the token: the tokens then come out with other frequencies than
they should, with the exact answers and in the limit of many steps too.

When the factor is right. Over hidden places K the posterior of the tokens is ∝ p(x_K | shown) Π_{j∈K} (1 −
α_{x_j}(t)). The factor of a place itself is the one above; those of the *other* hidden places are inside its answer,
if anywhere. So:

- A plain masked model answers p(x_i | shown) without any factor. With its own factor added this is the posterior, if
  i is the last hidden place, or the hidden places are independent given the shown ones, or all tokens have one
  schedule. Otherwise the factors of the other places are missing, and a bias stays for T → ∞.
- A network trained with besag's `spindle` objective with the same counts and strength: its own factor was added there
  in the same way, so it has not learned it, and has learned those of the others, averaged over the times it was
  shown.
- A network trained to predict tokens under spindle masks without that care has learned the factor of the place itself
  (averaged over times). Adding it here would count it twice.

One pass serves many times. With Z(t) = Σ_v p_v (1 − α_v(t)) = t + b̄ sin(πt), b̄ = Σ_v p_v b_v, a place stays masked
from t to s with probability Z(s)/Z(t): these telescope for as long as nothing changes, and the network does not see
the time. So each place holds one uniform number; it is revealed at the first time of the grid by which the product of
those ratios has fallen to that number, and a step of the kernel goes to the next time at which something is revealed,
as `ancestral` does. With λ = 0 it is `ancestral` with the log-linear schedule, sample by sample. All hidden places
are asked about, since each needs its b̄.

The law. One place, or independent ones: exact with any grid. Dependent places: the error of revealing places
together, as in `ancestral`, and that of the missing factors. `temperature`, `top_k` and `top_p` act on p, before the
factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor

from besag.checks import number
from besag.conditionals.contract import Questions
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.masks.token_schedules import Kept, curvatures, kept
from besag.noise import Sampling
from besag.reductions import Chunk
from besag.samplers.drawing import COLDEST, Drawing, allowed_at, answered, law_of, sample
from besag.samplers.kernel import Canvas, Info, Kernel, Noise, changes, made, register
from besag.samplers.kernels.decoding import hidden_at_first, most_hidden, never_the_mask, refuse_nothing_hidden
from besag.samplers.kernels.schedules import checked_grid

USUAL = 0.3  # λ as published


class Counts(tuple[float, ...]):
    """How often each token occurs. Says how many they are, since nobody reads them all."""

    def __repr__(self) -> str:
        return f"<{len(self)} tokens>"


class SpindleState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    bend: Tensor  # (V,) b, where the network is
    made: Tensor  # (C,) on the host: the steps of the grid that each chain has behind it
    threshold: Tensor  # (C, L) on the host: a place is revealed once Z has fallen to this share of what it is; 0: shown


@register
@dataclass(frozen=True)
class Spindle(Kernel):
    name = "spindle"
    title = "masked diffusion, telling tokens revealed last"
    formula = "revealed as v with probability μ_v (α_v(s) − α_v(t))/(1 − α_v(t)), μ_v ∝ p_v (1 − α_v(t))"
    law = "exact for independent places; else off by what shares a step and by the factors of other hidden places"
    passes = "at most min(n, T) for n places"
    ends = True
    cite = ("he2023",)
    aliases = ("diffusionbert",)

    counts: Annotated[Sequence[float], "how often each token occurs; if none, those kept beside the model"] = ()
    strength: Annotated[float | None, "λ: how far schedules differ; if none, the model's own, or 0.3"] = None
    grid: Annotated[int, "steps of time"] = 64
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    def __post_init__(self) -> None:
        checked_grid(self.grid)
        if self.strength is not None and not 0 <= self.strength <= 1 / COLDEST:
            raise BesagError(f"strength={quoted(self.strength)}: λ is at least 0 (0 is ancestral)")
        object.__setattr__(self, "counts", Counts(number(one, "counts") for one in self.counts))
        if self.counts and not (min(self.counts) >= 0 and 0 < sum(self.counts) < torch.inf):
            raise BesagError("counts: how often each token occurs, finite numbers from 0 up and not all of them 0")
        Drawing(self.temperature, self.top_k, self.top_p)

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return made(min(n, self.grid), steps) * (length + source)

    def check(self, canvas: Canvas) -> None:
        refuse_nothing_hidden(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> SpindleState:
        width, device = engine.conditionals.width, canvas.ids.device
        counts, strength = self._schedules(getattr(engine.conditionals, "folder", None))
        if len(counts) > width:
            raise BesagError(f"counts of {len(counts)} tokens for a network that knows {width}")
        known = torch.zeros(width, dtype=torch.float64)
        known[: len(counts)] = counts
        bend = curvatures(known, strength).to(device, torch.float32 if device.type == "mps" else torch.float64)
        threshold = noise.grid(Sampling.TIME, 0, canvas.ids.shape[1]) * hidden_at_first(canvas)
        canvas = never_the_mask(canvas, width)
        made = torch.zeros(len(threshold), dtype=torch.long)
        return SpindleState(canvas.ids.clone(), canvas, 0, bend, made, threshold)

    def _schedules(self, folder: Path | None) -> Kept:
        """Those that are given, or those that the network was trained with."""
        own = kept(folder)
        if not self.counts and own is None:
            raise BesagError(
                "spindle needs to know how often each token occurs, and no counts lie beside this model, as they do "
                "beside one trained by the objective 'spindle': give counts=, one number for each token"
            )
        counts = torch.tensor(self.counts, dtype=torch.float64) if self.counts or own is None else own.counts
        usual = USUAL if own is None else own.strength
        return Kept(counts, usual if self.strength is None else self.strength)

    def step(self, engine: Engine, noise: Noise, state: SpindleState) -> tuple[SpindleState, Info]:
        left = state.threshold > 0  # (C, L)
        busy = left.any(1)  # (C,)
        row, place = left.nonzero(as_tuple=True)  # (M,) each
        jump = _Jump(
            state.bend, state.canvas.allowed, Drawing(self.temperature, self.top_k, self.top_p), self.grid, place,
            made=state.made[row], threshold=state.threshold[row, place],
            uniform=noise.asks(Sampling.DRAW, 0, row, place),
        )  # fmt: skip
        shown = state.ids[busy.to(state.ids.device)]
        questions = Questions(shown, (busy.cumsum(0) - 1)[row], place, given=state.canvas.given_to(busy))
        kept = answered(engine, questions, jump)
        at = torch.full_like(state.threshold, self.grid, dtype=torch.long).index_put((row, place), kept["at"].cpu())
        mean = torch.zeros_like(state.threshold).index_put((row, place), kept["mean"].cpu().double())
        made = at.amin(1).where(busy, state.made)  # (C,)
        chosen = left & (at == made[:, None])
        fallen = still(mean, state.made[:, None], self.grid) / still(mean, made[:, None], self.grid)
        threshold = (state.threshold * fallen).where(left & ~chosen, torch.zeros(()))
        places = tuple(part.to(state.ids.device) for part in (row, place))
        ids = state.ids.index_put(places, kept["token"]).where(chosen.to(state.ids.device), state.ids)
        info = Info(
            changes(state.ids, ids), busy.long(), {"revealed": chosen.sum(1), "time": 1 - made.double() / self.grid}
        )
        return state._replace(ids=ids, step=state.step + 1, made=made, threshold=threshold), info

    def steps(self, canvas: Canvas) -> int:
        return min(self.grid, most_hidden(canvas))

    def done(self, state: Any) -> bool:
        return not bool((state.threshold > 0).any())


def still(bend: Tensor, made: Tensor, grid: int) -> Tensor:
    """t + b sin(πt) after so many steps of the grid: the probability of being still masked."""
    time = 1 - made.double() / grid
    return time + bend * torch.sin(pi * time)


@dataclass(frozen=True, eq=False)
class _Jump:
    """The reduction: the step of the grid that would reveal each place if nothing else happened, and as which token."""

    bend: Tensor  # (V,)
    allowed: Tensor | None
    drawing: Drawing
    grid: int
    place: Tensor  # (M,) and so are all below
    made: Tensor
    threshold: Tensor
    uniform: Tensor

    def __call__(self, chunk: Chunk) -> dict[str, Tensor]:
        asks, device = chunk.asks, chunk.logits.device
        law = law_of(chunk, self.drawing, allowed_at(self.allowed, self.place[asks], device))  # (m, V)
        bend = self.bend.to(law)
        mean = (law.exp() * bend).sum(-1)  # (m,)
        at = self._fallen(mean.cpu().double(), self.made[asks], self.threshold[asks])
        # From t to s the token v is revealed with probability ∝ p_v (t − s) (1 + b_v · slope).
        late, early = 1 - (at - 1).double() / self.grid, 1 - at.double() / self.grid
        slope = (torch.sin(pi * late) - torch.sin(pi * early)) * self.grid  # (m,)
        token = sample(law + torch.log1p(slope.to(law)[:, None] * bend), self.uniform[asks])
        return {"at": at, "token": token, "mean": mean}

    def _fallen(self, mean: Tensor, made: Tensor, threshold: Tensor) -> Tensor:
        """(m,) the first step by which Z has fallen to its threshold; by bisection, since Z falls, to 0 at the last."""
        height = threshold * still(mean, made, self.grid)
        above, below = made, torch.full_like(made, self.grid)
        while bool((below - above > 1).any()):
            middle = (above + below) // 2
            fallen = still(mean, middle, self.grid) <= height
            above, below = above.where(fallen, middle), middle.where(fallen, below)
        return below
