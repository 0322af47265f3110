"""The parts of a Metropolis step: the model proposes, energies decide.

Their target is exp(−Σ_j w_j E_j(x)), any energies and weights: one of them for `metropolis.py`, two for `annealed.py`.
Knows no temperature and no schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from besag.checks import MOST_PLACES, whole_number
from besag.conditionals.contract import Questions
from besag.engine import Engine
from besag.errors import BesagError, nearest
from besag.noise import Sampling
from besag.reductions import Chunk
from besag.samplers.drawing import Drawing, allowed_at, answered, draw, law_of, sample
from besag.samplers.kernel import Canvas, Noise
from besag.samplers.kernels.decoding import foremost, hidden_at_first
from besag.samplers.kernels.energy import EnergyName, energies, term, text_places

MoveName: TypeAlias = Literal["single", "block", "adjacent"]
MOVES = ("single", "block", "adjacent")


@dataclass(frozen=True)
class Proposals:
    """Which places are drawn anew together, and from which law."""

    move: MoveName
    size: int | None
    drawing: Drawing

    def __post_init__(self) -> None:
        if self.move not in MOVES:
            raise BesagError(f"move={self.move!r}: give one of {', '.join(MOVES)}.{nearest(str(self.move), MOVES)}")
        if self.size is not None:
            whole_number(self.size, "size", right=f"move={self.move!r} needs at least 1 place", most=MOST_PLACES)
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
            return foremost(noise.grid(Sampling.WHERE, step, free.shape[1]), free, self.places)
        number = free.cumsum(1) - 1  # (C, L) of each free place among the free ones
        first = (noise.chains(Sampling.WHERE, step) * (free.sum(1) - self.places + 1)).long()  # (C,)
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
    ids, empty = canvas.ids.clone(), hidden_at_first(canvas)  # (C, L) each
    number = empty.cumsum(1) - 1
    log_prob = torch.zeros(ids.shape, dtype=torch.float64)
    for turn in range(int(empty.sum(1).max())):
        row, place = (empty & (number == turn)).nonzero(as_tuple=True)
        at, uniform = (row.to(ids.device), place.to(ids.device)), noise.asks(Sampling.START, 0, row, place)
        asked = torch.arange(len(row))
        given = canvas.given_to(row)
        drawn = draw(engine, ids[at[0]], asked, place, uniform, drawing=drawing, allowed=canvas.allowed, given=given)
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
    uniform = noise.asks(Sampling.DRAW, step, row, place)
    reduction = _Propose(proposals.drawing, energy, place, uniform, canvas.allowed, None if heat is None else heat[row])
    kept = answered(engine, Questions(shown, row, place, target=ids[at], given=canvas.given), reduction)
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
    accepted = noise.chains(Sampling.ACCEPT, step).log() < ratio
    taken = accepted[:, None]
    return Decided(
        torch.where(taken.to(ids.device), proposal.ids, ids), torch.where(taken, then, now), accepted, ratio, passes
    )


def walked(n: int, length: int, steps: int, places: int) -> int:
    """Return the most passes of a chain: filling n positions, the energy of the start, and `steps` proposals.

    An energy takes a pass for each position that holds text, `length` at most. A step proposes in one pass and measures
    the proposal; where one position moved, its own term is known.
    """
    return n + length + steps * (length + (places > 1))


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
        logits = chunk.per_ask(chunk.logits)  # (m, V)
        asks = chunk.asks
        heat = None if self.heat is None else self.heat[asks]
        law = law_of(chunk, self.drawing, allowed_at(self.allowed, self.place[asks], logits.device), heat)
        token = sample(law, self.uniform[asks])
        drawn = token[:, None]
        assert chunk.target is not None
        return {
            "token": token,
            "there": law.gather(1, drawn)[:, 0],
            "back": law.gather(1, chunk.target[:, None])[:, 0],
            "own": term(logits.gather(1, drawn)[:, 0], chunk.per_ask(chunk.normaliser), self.energy),
        }
