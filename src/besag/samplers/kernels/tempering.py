"""Parallel tempering: a ladder of Metropolis chains, the hot ones find ways that the cold one cannot, and they swap.

    rung k samples from exp(−E(x)/T_k),   T_k = T_0 (hottest/T_0)^(k/(K−1)),   T_0 = energy_temperature
    neighbours a, b swap with probability  min(1, exp((E(x_a) − E(x_b)) (1/T_a − 1/T_b)))

Both kinds of step leave the product of the K laws invariant, so the cold rung, which is what the chain shows, has the
law exp(−E/T_0) exactly, as a single Metropolis chain has; it only gets there sooner where the law has several modes. A
step is one Metropolis move of every rung, then swaps of the pairs (0, 1), (2, 3) … at even steps and (1, 2), (3, 4) …
at odd ones (Geyer 1991); two rungs swap at every step.

The model's answer at T = 1 hardly ever proposes to leave a mode, so a hot target alone would not help: a rung also
proposes from hotter answers, its logits divided by T_k/T_0. The acceptance knows of it; no law changes.

Rung k of chain c has the noise of chain number c·K + k: a chain's noise is its own, however chains are split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from besag.checks import whole_number
from besag.engine import Engine
from besag.errors import BesagError
from besag.noise import Sampling
from besag.samplers.drawing import Drawing
from besag.samplers.kernel import SWEEPS, Canvas, Info, Kernel, Noise, changes, register
from besag.samplers.kernels.energy import EnergyName, energies, refuse_cold, text_places
from besag.samplers.kernels.proposals import MoveName, Proposals, decide, fill, propose, sentence_energy, walked

MOST_RUNGS = 1024


class TemperingState(NamedTuple):
    ids: Tensor  # (C, L) the cold rung
    canvas: Canvas
    step: int
    hotter: Tensor  # (C, K − 1, L) the others, coldest first
    energy: Tensor  # (C, K) of all rungs, float64, on the host
    spent: Tensor  # (C,) passes that no step has reported yet: those of the start


@register
@dataclass(frozen=True)
class Tempering(Kernel):
    name = "tempering"
    title = "Metropolis at a ladder of temperatures, with swaps"
    formula = "rung k ∝ exp(−E/T_k); swap a, b with min(1, exp((E_a − E_b)(1/T_a − 1/T_b)))"
    law = "p(x) ∝ exp(−E(x)/T), exactly, on the cold rung, which the chain shows"
    passes = "those of `metropolis`, for each rung"
    cite = ("geyer1991", "goyal2022")
    aliases = ("parallel_tempering", "replica_exchange")

    rungs: Annotated[int, "temperatures of the ladder"] = 4
    hottest: Annotated[float, "energy temperature of the last rung"] = 4.0
    energy: Annotated[EnergyName, "normalised log-probabilities, or raw logits"] = "norm"
    energy_temperature: Annotated[float, "T of the target exp(−E/T), of the cold rung"] = 1.0
    move: Annotated[MoveName, "which places are proposed together"] = "single"
    size: Annotated[int | None, "places that a block or a run has; if none, 2"] = None
    temperature: Annotated[float, "divides the logits: 1 is the model's own law"] = 1.0
    top_k: Annotated[int | None, "draw from so many of the likeliest tokens"] = None
    top_p: Annotated[float | None, "draw from the fewest tokens that hold this share"] = None

    def __post_init__(self) -> None:
        refuse_cold("energy_temperature", self.energy_temperature)
        refuse_cold("hottest", self.hottest)
        _ = self._proposals  # checks its own
        right = "a ladder has at least 2; one temperature alone is `metropolis`"
        whole_number(self.rungs, "rungs", 2, right=right, most=MOST_RUNGS)
        if self.hottest <= self.energy_temperature:
            raise BesagError(
                f"hottest={self.hottest!r}: the ladder climbs from energy_temperature={self.energy_temperature!r}, so "
                "it must be above that"
            )

    @property
    def temperatures(self) -> tuple[float, ...]:
        """(K,) of the energies, the cold rung first."""
        ratio = self.hottest / self.energy_temperature
        return tuple(self.energy_temperature * ratio ** (k / (self.rungs - 1)) for k in range(self.rungs))

    @property
    def _proposals(self) -> Proposals:
        return Proposals(self.move, self.size, Drawing(self.temperature, self.top_k, self.top_p))

    def cost(self, n: int, length: int, steps: int | None = None, source: int = 0) -> int:
        passes = walked(n, length, SWEEPS * n if steps is None else steps, self._proposals.places)
        return self.rungs * passes * (length + source)

    def check(self, canvas: Canvas) -> None:
        super().check(canvas)
        self._proposals.check(canvas)

    def init(self, engine: Engine, noise: Noise, canvas: Canvas) -> TemperingState:
        ladder = self._ladder(canvas)
        ids, _, passes = fill(engine, self._noise(noise), ladder, self._proposals.drawing)
        places = text_places(engine, ladder)
        energy = energies(engine, ladder, ids, places, self.energy).view(-1, self.rungs)
        rungs = ids.view(-1, self.rungs, ids.shape[1])  # (C, K, L)
        spent = (passes + places.sum(1)).view(-1, self.rungs).sum(1)
        return TemperingState(rungs[:, 0].clone(), canvas, 0, rungs[:, 1:].clone(), energy, spent)

    def step(self, engine: Engine, noise: Noise, state: TemperingState) -> tuple[TemperingState, Info]:
        count, length = state.ids.shape
        noise, ladder = self._noise(noise), self._ladder(state.canvas)
        ids = torch.cat([state.ids[:, None], state.hotter], 1).view(-1, length)  # (C·K, L)
        hot = torch.tensor(self.temperatures, dtype=torch.float64)  # (K,)
        heat = (hot / self.energy_temperature).repeat(count)
        proposal = propose(engine, noise, ladder, ids, state.step, self._proposals, self.energy, heat)
        measure = sentence_energy(engine, ladder, self.energy)
        weights = (1 / hot).repeat(count)[:, None]  # (C·K, 1)
        decided = decide(noise, ids, state.step, proposal, state.energy.view(-1, 1), weights, measure)
        energy = decided.energies.view(count, -1)  # (C, K)
        uniform = noise.chains(Sampling.SWAP, state.step).view(count, -1)
        order, swapped = self._swaps(energy, hot, uniform, state.step)
        rungs = decided.ids.view(count, -1, length)
        rungs = rungs.gather(1, order.to(ids.device)[:, :, None].expand(-1, -1, length))
        energy = energy.gather(1, order)
        accepted = decided.accepted.view(count, -1)[:, 0].double()
        more = {"accepted": accepted, "swapped": swapped, "energy": energy[:, 0]}
        info = Info(changes(state.ids, rungs[:, 0]), decided.passes.view(count, -1).sum(1) + state.spent, more)
        cold, hotter = rungs[:, 0], rungs[:, 1:]
        return TemperingState(cold, state.canvas, state.step + 1, hotter, energy, torch.zeros_like(state.spent)), info

    def _swaps(self, energy: Tensor, hot: Tensor, uniform: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """(C, K) which rung's sequence each rung has now; (C,) the share of the pairs that swapped."""
        order = torch.arange(self.rungs).repeat(len(energy), 1)
        cold = torch.arange(step % 2 if self.rungs > 2 else 0, self.rungs - 1, 2)  # the colder one of each pair
        gain = (energy[:, cold] - energy[:, cold + 1]) * (1 / hot[cold] - 1 / hot[cold + 1])
        swap = uniform[:, cold].log() < gain  # two impossible states give NaN, and stay
        order[:, cold] += swap.long()
        order[:, cold + 1] -= swap.long()
        return order, swap.double().mean(1)

    def _ladder(self, canvas: Canvas) -> Canvas:
        """(C·K, L) K rungs for each chain, one after the other."""
        return canvas.rows(torch.arange(len(canvas.ids), device=canvas.ids.device).repeat_interleave(self.rungs))

    def _noise(self, noise: Noise) -> Noise:
        return noise._replace(chain=(noise.chain[:, None] * self.rungs + torch.arange(self.rungs)).view(-1))
