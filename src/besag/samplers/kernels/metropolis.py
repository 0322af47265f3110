"""Metropolis-Hastings on the energy of a sentence: the model proposes, the energy decides.

    choose places K, independently of x
    propose x'_i ~ q(· | x_∖K) for i in K        the model's answer, all of K hidden, one pass
    accept with probability  min(1, exp((E(x) − E(x')) / T) · Π_K q(x_i | x_∖K) / Π_K q(x'_i | x_∖K))

x and x' are the same outside K, so one pass gives the way there and the way back. The chain leaves p(x) ∝ exp(−E(x)/T)
invariant, whatever the conditionals are, compatible or not; E is one of `energy.py`, T the `energy_temperature`. It is
not the Gibbs sampler: that one accepts always, and has no law that an energy describes unless the conditionals fit.
(Goyal, Dyer and Berg-Kirkpatrick 2022.)

`temperature`, `top_k` and `top_p` shape the proposal q alone, never the target. A truncated proposal may be unable to
come back: where q(x_i | x_∖K) = 0, the ratio is 0 and the move is rejected. The target stays invariant, but parts of it
may then be out of reach from where the chain stands, for good.

A state of probability 0 (E = +inf, or a token at a free place that is not allowed) is left by any move; none leads
there from elsewhere.

Annealing lowers T while the chain runs. It is a search, not a sampler: no law is invariant, and the states that it
visits are draws from none. `tempering.py` uses several temperatures and keeps the law; `annealed.py` weighs.

The parts of a step are `proposals.py`'s, which `tempering.py` and `annealed.py` share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from besag.checks import MOST_STEPS, is_whole, whole_number
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.samplers.drawing import Drawing
from besag.samplers.kernel import SWEEPS, Canvas, Info, Kernel, Noise, changes, register
from besag.samplers.kernels.energy import EnergyName, energies, refuse_cold, text_places
from besag.samplers.kernels.proposals import MoveName, Proposals, decide, fill, propose, sentence_energy, walked


class MetropolisState(NamedTuple):
    ids: Tensor  # (C, L)
    canvas: Canvas
    step: int
    energy: Tensor  # (C,) of ids, float64, on the host
    spent: Tensor  # (C,) passes that no step has reported yet: those of the start


@register
@dataclass(frozen=True)
class Metropolis(Kernel):
    name = "metropolis"
    title = "the model proposes, the energy of the sentence decides"
    formula = "x' ~ q(· | x_∖K), accepted with min(1, exp((E(x) − E(x'))/T) · q(x|x') / q(x'|x))"
    law = "p(x) ∝ exp(−E(x)/T), exactly; with `anneal` not invariant: a search, no law"
    passes = "n a step, n + 1 where several places move, 1 where nothing new was proposed"
    cite = ("goyal2022", "hastings1970")
    aliases = ("mh", "metropolis_hastings")

    energy: Annotated[EnergyName, "normalised log-probabilities, or raw logits"] = "norm"
    energy_temperature: Annotated[float, "T of the target exp(−E/T)"] = 1.0
    move: Annotated[MoveName, "which places are proposed together"] = "single"
    size: Annotated[int | None, "places that a block or a run has; if none, 2"] = None
    anneal: Annotated[tuple[float, float, int] | None, "energy temperature from, to, in so many steps"] = None
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    def __post_init__(self) -> None:
        refuse_cold("energy_temperature", self.energy_temperature)
        _ = self._proposals  # checks its own
        if self.anneal is not None:
            if len(self.anneal) != 3 or not is_whole(self.anneal[2]):
                raise BesagError(
                    f"anneal={quoted(self.anneal)}: give (start, end, steps), two energy temperatures and how many "
                    "steps it takes from the one to the other, such as [4.0, 0.5, 100]"
                )
            whole_number(self.anneal[2], "the steps of anneal", most=MOST_STEPS)
            for value in self.anneal[:2]:
                refuse_cold("anneal", value)
            if self.energy_temperature != 1:
                raise BesagError(
                    f"anneal={self.anneal!r} sets the energy temperature of every step; leave out "
                    f"energy_temperature={self.energy_temperature!r}"
                )

    @property
    def invariant(self) -> bool:
        """Does a step leave a law as it is? Not while the temperature falls."""
        return self.anneal is None

    @property
    def _proposals(self) -> Proposals:
        return Proposals(self.move, self.size, Drawing(self.temperature, self.top_k, self.top_p))

    def temperature_at(self, step: int) -> float:
        """The energy temperature of a step; annealed geometrically, then constant."""
        if self.anneal is None:
            return self.energy_temperature
        start, end, steps = self.anneal
        return float(start * (end / start) ** min(1.0, step / steps))

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        return walked(n, length, SWEEPS * n if steps is None else steps, self._proposals.places) * (length + source)

    def check(self, canvas: Canvas) -> None:
        super().check(canvas)
        self._proposals.check(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> MetropolisState:
        ids, _, passes = fill(engine, noise, canvas, self._proposals.drawing)
        places = text_places(engine, canvas)
        energy = energies(engine, canvas, ids, places, self.energy)
        return MetropolisState(ids, canvas, 0, energy, passes + places.sum(1))

    def step(self, engine: Engine, noise: Noise, state: MetropolisState) -> tuple[MetropolisState, Info]:
        canvas = state.canvas
        measure = sentence_energy(engine, canvas, self.energy)
        proposal = propose(engine, noise, canvas, state.ids, state.step, self._proposals, self.energy)
        weights = torch.tensor([1 / self.temperature_at(state.step)], dtype=torch.float64)
        decided = decide(noise, state.ids, state.step, proposal, state.energy[:, None], weights, measure)
        energy = decided.energies[:, 0]
        more = {"accepted": decided.accepted.double(), "log_ratio": decided.log_ratio, "energy": energy}
        info = Info(changes(state.ids, decided.ids), decided.passes + state.spent, more)
        return MetropolisState(decided.ids, canvas, state.step + 1, energy, torch.zeros_like(state.spent)), info
