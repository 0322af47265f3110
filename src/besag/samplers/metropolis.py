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

`propose` and `decide` know nothing of one temperature: their target is exp(−Σ_j w_j E_j(x)), any energies and weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from besag.conditionals.contract import Questions
from besag.engine import Engine
from besag.errors import BesagError, nearest
from besag.reductions import Chunk
from besag.samplers.decoding import foremost
from besag.samplers.drawing import Drawing, allowed_at, draw, sample
from besag.samplers.energy import EnergyName, energies, refuse_cold, refuse_unknown, term, text_places
from besag.samplers.kernel import ACCEPT, DRAW, START, WHERE, Canvas, Info, Kernel, Noise, changes, register

MoveName: TypeAlias = Literal["single", "block", "adjacent"]
MOVES = ("single", "block", "adjacent")


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

    energy: EnergyName = "norm"
    energy_temperature: float = 1.0
    move: MoveName = "single"
    size: int | None = None  # places that a block or a run has; None: 2
    anneal: tuple[float, float, int] | None = None  # energy temperature from, to, in so many steps
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        refuse_unknown(self.energy)
        refuse_cold("energy_temperature", self.energy_temperature)
        _ = self._proposals  # checks its own
        if self.anneal is not None:
            if len(self.anneal) != 3 or not isinstance(self.anneal[2], int) or self.anneal[2] < 1:
                raise BesagError(
                    f"anneal={self.anneal!r}: give (start, end, steps), two energy temperatures and how many steps it "
                    "takes from the one to the other, such as [4.0, 0.5, 100]"
                )
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


# ---- the parts of a step, for targets of any energies and weights


@dataclass(frozen=True)
class Proposals:
    """Which places are drawn anew together, and from which law."""

    move: MoveName
    size: int | None
    drawing: Drawing

    def __post_init__(self) -> None:
        if self.move not in MOVES:
            raise BesagError(f"move={self.move!r}: give one of {', '.join(MOVES)}.{nearest(str(self.move), MOVES)}")
        if self.size is not None and self.size < 1:
            raise BesagError(f"size={self.size!r}: move={self.move!r} needs at least 1 place")
        if self.move == "single" and self.size not in (None, 1):
            raise BesagError(f"size={self.size!r}: a single move has one place; give move='block' or move='adjacent'")

    @property
    def places(self) -> int:
        return 1 if self.move == "single" else 2 if self.size is None else self.size

    def check(self, canvas: Canvas) -> None:
        fewest = int(canvas.free.sum(1).min())
        if self.places > fewest:
            raise BesagError(f"size={self.places}: move={self.move!r} needs that many free places; there are {fewest}")

    def choose(self, noise: Noise, free: Tensor, step: int) -> Tensor:
        """(C, L) bool, on the host. A run is one of the free places: clamped ones between them do not count."""
        if self.move == "block":
            return foremost(noise.grid(WHERE, step, free.shape[1]), free, self.places)
        number = free.cumsum(1) - 1  # (C, L) of each free place among the free ones
        first = (noise.chains(WHERE, step) * (free.sum(1) - self.places + 1)).long()  # (C,)
        return free & (number >= first[:, None]) & (number < (first + self.places)[:, None])


class Proposal(NamedTuple):
    """Where every chain might go. All but ids lie on the host."""

    ids: Tensor  # (C, L)
    moved: Tensor  # (C, L) bool: the places drawn anew
    there: Tensor  # (C,) log q(x' | x)
    back: Tensor  # (C,) log q(x | x')
    own: Tensor | None  # (C,) what the new token adds to −E, where only one was drawn: the same question answers both

    def rows(self, which: Tensor) -> Proposal:
        ids = self.ids[which.to(self.ids.device)]
        own = None if self.own is None else self.own[which]
        return Proposal(ids, self.moved[which], self.there[which], self.back[which], own)


class Measured(NamedTuple):
    energies: Tensor  # (R, J) float64, on the host
    passes: Tensor  # (R,)


Measure: TypeAlias = Callable[[Tensor, Proposal], Measured]  # of the chains in rows (R,), and their proposals


class Decided(NamedTuple):
    ids: Tensor  # (C, L)
    energies: Tensor  # (C, J)
    accepted: Tensor  # (C,) bool
    log_ratio: Tensor  # (C,) of Metropolis and Hastings, before it is cut at 0
    passes: Tensor  # (C,)


def fill(engine: Engine, noise: Noise, canvas: Canvas, drawing: Drawing) -> tuple[Tensor, Tensor, Tensor]:
    """Draw what is hidden from left to right, each place given what is shown so far.

    The sequences (C, L), the log-probability of each draw (C, L) on the host, 0 at other places, and the passes (C,).
    """
    ids = canvas.ids.clone()
    empty = ((ids == canvas.mask_id) & canvas.free).cpu()  # (C, L)
    number = empty.cumsum(1) - 1
    log_prob = torch.zeros(ids.shape, dtype=torch.float64)
    for turn in range(int(empty.sum(1).max())):
        row, place = (empty & (number == turn)).nonzero(as_tuple=True)
        at, uniform = (row.to(ids.device), place.to(ids.device)), noise.asks(START, 0, row, place)
        asked = torch.arange(len(row))
        drawn = draw(engine, ids[at[0]], asked, place, uniform, drawing=drawing, allowed=canvas.allowed)
        ids = ids.index_put(at, drawn.token)
        log_prob[row, place] = drawn.log_prob.cpu().double()
    return ids, log_prob, empty.sum(1)


def propose(
    engine: Engine,
    noise: Noise,
    canvas: Canvas,
    ids: Tensor,
    step: int,
    proposals: Proposals,
    energy: EnergyName,
    heat: Tensor | None = None,
) -> Proposal:
    """One pass a chain. `heat` (C,) divides the logits of each chain, on top of the proposal's own temperature."""
    moved = proposals.choose(noise, canvas.free.cpu(), step)
    row, place = moved.nonzero(as_tuple=True)  # (M,) each
    at = row.to(ids.device), place.to(ids.device)
    shown = ids.index_put(at, torch.tensor(canvas.mask_id, device=ids.device))
    uniform = noise.asks(DRAW, step, row, place)
    reduction = _Propose(proposals.drawing, energy, place, uniform, canvas.allowed, None if heat is None else heat[row])
    kept = engine.ask(Questions(shown, row, place, target=ids[at]), reduction)
    there, back, own = (
        torch.zeros(len(ids), dtype=torch.float64).index_add(0, row, kept[name].cpu().double())
        for name in ("there", "back", "own")
    )
    return Proposal(ids.index_put(at, kept["token"]), moved, there, back, own if proposals.places == 1 else None)


def decide(
    noise: Noise, ids: Tensor, step: int, proposal: Proposal, now: Tensor, weights: Tensor, measure: Measure
) -> Decided:
    """Accept or reject, for the target exp(−Σ_j w_j E_j); `now` (C, J) are the energies of ids, weights (J) or (C, J).

    The energy of a proposal is asked only where it can be accepted, and where it is another sequence.
    """
    count = len(ids)
    weights = weights.expand_as(now)
    level = potential(weights, now)  # (C,)
    lost = level == torch.inf
    same = (proposal.ids == ids).all(1).cpu()
    rows = (~same & (lost | (proposal.back > -torch.inf))).nonzero()[:, 0]  # (R,)
    then, passes = now.clone(), torch.ones(count, dtype=torch.long)
    reached = torch.full_like(level, torch.inf)  # and it stays so where there is no way back
    if len(rows):
        measured = measure(rows, proposal.rows(rows))
        then[rows], passes[rows] = measured.energies, 1 + measured.passes
        reached[rows] = potential(weights[rows], measured.energies)
    ratio = level - reached + proposal.back - proposal.there
    ratio = torch.where(same, 0.0, ratio)
    ratio = torch.where(lost, torch.inf, ratio)  # a state of probability 0 has nothing to lose
    accepted = noise.chains(ACCEPT, step).log() < ratio
    taken = accepted[:, None]
    return Decided(
        torch.where(taken.to(ids.device), proposal.ids, ids), torch.where(taken, then, now), accepted, ratio, passes
    )


def potential(weights: Tensor, values: Tensor) -> Tensor:
    """(C,) Σ_j w_j E_j, where a weight of 0 makes nothing of an infinite energy."""
    return torch.where(weights == 0, 0.0, weights * values).sum(1)


def sentence_energy(engine: Engine, canvas: Canvas, energy: EnergyName) -> Measure:
    """One energy, J = 1. Where one place was drawn anew, its own term is known from the proposal."""
    places = text_places(engine, canvas)

    def measure(rows: Tensor, proposal: Proposal) -> Measured:
        asked = places[rows] if proposal.own is None else places[rows] & ~proposal.moved
        some = canvas.rows(rows.to(canvas.ids.device))
        known = energies(engine, some, proposal.ids, asked, energy)
        return Measured((known if proposal.own is None else known - proposal.own)[:, None], asked.sum(1))

    return measure


@dataclass(frozen=True, eq=False)
class _Propose:
    """The reduction: holds something for each ask, so it serves one call of `Engine.ask`. The target is what stands."""

    drawing: Drawing
    energy: EnergyName
    place: Tensor
    uniform: Tensor
    allowed: Tensor | None
    heat: Tensor | None

    def __call__(self, chunk: Chunk) -> dict[str, Tensor]:
        device, asks = chunk.logits.device, chunk.asks
        logits = chunk.per_ask(chunk.logits)  # (m, V)
        allowed = allowed_at(self.allowed, self.place[asks], device)
        heated = logits if self.heat is None else logits / self.heat[asks].to(logits)[:, None]
        law = self.drawing.law(heated, allowed)
        token = sample(law, self.uniform[asks])
        drawn = token[:, None]
        assert chunk.target is not None
        return {
            "token": token,
            "there": law.gather(1, drawn)[:, 0],
            "back": law.gather(1, chunk.target[:, None])[:, 0],
            "own": term(logits.gather(1, drawn)[:, 0], chunk.per_ask(chunk.normaliser), self.energy),
        }
