"""Annealed importance sampling: what exp(−E) sums to, so that an energy becomes a log-probability.

    Z = Σ_x exp(−E(x)/T)         over all sequences of the canvas: its length, its clamped words, its allowed tokens
    log p(x) = −E(x)/T − log Z   a normalised log-probability of a sentence, given its length

The way from a law that is known to exp(−E/T), β from 0 to 1 in equal steps (Neal 2001):

    f_β(x) = p_0(x)^(1−β) · exp(−β E(x)/T)
    x ~ p_0;  then at each level  log w += (β_k − β_(k−1)) · (−E(x)/T − log p_0(x)),  and x moves, f_(β_k) invariant

p_0 is the chain rule of the same model from left to right over the free places, p_0(x) = Π_i p(x_i | x_<i, the free
places from i on hidden), each row renormalised over the allowed tokens. It sums to one for any model, is drawn from
exactly, and is the law of the score `chain`. The moves are those of `metropolis`.

The mean of w is unbiased for Z, with any number of levels and moves, if p_0 gives every sentence some probability. Its
logarithm is then too low on average (Jensen), by about se²/2. The interval is the delta method over chains. It can be
trusted only as far as the weights can: where the effective sample size is a few chains, the true log Z is likely to be
higher than it says. More levels help, more chains help less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from besag.checks import MOST_CHAINS, is_number, whole_number
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, lines
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted, number, passes
from besag.samplers.drawing import Drawing, draw
from besag.samplers.kernel import Canvas, Noise, refuse_no_places
from besag.samplers.kernels.energy import EnergyName, energies, refuse_cold, refuse_unknown, text_places
from besag.samplers.kernels.proposals import (
    Measure,
    Measured,
    MoveName,
    Proposal,
    Proposals,
    decide,
    fill,
    potential,
    propose,
    sentence_energy,
)

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class LogZ(Presented):
    """log Σ_x exp(−E(x)/T), estimated, and how well."""

    estimate: float
    low: float  # of the interval
    high: float
    se: float  # standard error of the estimate
    ess: float  # effective sample size of the weights: 1 … chains
    chains: int
    passes: int  # forward passes of all chains together
    energy: EnergyName
    energy_temperature: float
    confidence: float

    @property
    def status(self) -> Status:
        """Unsure where no chain found a sentence of any weight."""
        return Status.OK if math.isfinite(self.estimate) else Status.UNSURE

    @property
    def unit(self) -> str:
        return "nats"

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the estimate, most important first."""
        return [
            *([] if self.status.fine else [self.status.sentence]),
            f"{self.confidence:.0%} interval {number(self.low)} to {number(self.high)}",
            f"effective sample size {number(self.ess, 1)} of {counted(self.chains, 'chain')}",
            f"energy {self.energy} at temperature {self.energy_temperature:g}",
            passes(self.passes),
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        return dict(json_ready({**self._answers(), "unit": self.unit, **vars(self)}))

    def to_pandas(self) -> DataFrame:
        """One row with a column a number."""
        return data.frame(self, [vars(self)])

    def _grids(self) -> list[Grid]:
        return [Grid((), lines([("log Z", f"{number(self.estimate)} ± {number(self.se)} nats")]), left=(0, 1))]


class LogProbability(NamedTuple):
    """log p(x) of S sentences; the uncertainty is that of log Z, the same for all of them."""

    estimate: Tensor  # (S,) float64, on the host
    low: Tensor  # (S,)
    high: Tensor  # (S,)


def log_partition(
    engine: Engine,
    canvas: Canvas,
    *,
    energy: EnergyName = "norm",
    energy_temperature: float = 1.0,
    chains: int = 64,
    levels: int = 50,
    moves: int = 1,
    move: MoveName = "single",
    size: int | None = None,
    seed: int = 0,
    confidence: float = 0.95,
) -> LogZ:
    """log Z of a canvas of one row. What stands at its free places does not matter.

    `levels` steps of β, between them `moves` Metropolis moves (`move` and `size` as in `metropolis`).
    """
    refuse_unknown(energy)
    refuse_cold("energy_temperature", energy_temperature)
    _refuse_many(canvas)
    for name, value, least in (("chains", chains, 2), ("levels", levels, 1), ("moves", moves, 1)):
        whole_number(value, name, least, right=f"give at least {least}", most=MOST_CHAINS)
    if not is_number(confidence) or not 0 < confidence < 1:
        raise BesagError(
            f"confidence={quoted(confidence)}: the share of intervals that hold the truth is above 0, below 1"
        )
    proposals = Proposals(move, size, Drawing())
    proposals.check(canvas)
    many = canvas.rows(torch.zeros(chains, dtype=torch.long, device=canvas.ids.device))
    noise = Noise(seed, torch.arange(chains))
    log_weights, passes = anneal(engine, noise, many, proposals, energy, energy_temperature, levels, moves)
    engine.check()
    estimate, se, ess = summary(log_weights)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * se
    low, high = (estimate - reach, estimate + reach) if math.isfinite(estimate) else (-math.inf, math.inf)
    total = int(passes.sum())
    return LogZ(estimate, low, high, se, ess, chains, total, energy, energy_temperature, confidence)


def log_probability(engine: Engine, canvas: Canvas, ids: Tensor, log_z: LogZ) -> LogProbability:
    """log p(x) = −E(x)/T − log Z of sentences ids (S, L), which agree with the canvas wherever it is clamped.

    `log_z` is that of the same canvas: it also says which energy. A sentence with a token that is not allowed: −inf.
    """
    _refuse_many(canvas)
    ids = ids.to(canvas.ids.device)
    many = canvas.rows(torch.zeros(len(ids), dtype=torch.long, device=canvas.ids.device))
    if ids.shape != many.ids.shape or not bool(((ids == many.ids) | many.free).all()):
        raise BesagError(
            f"sentences {ids.tolist()} must have the length of the canvas {canvas.ids[0].tolist()} and its tokens at "
            "clamped places: another length or other fixed words have another Z"
        )
    known = energies(engine, many, ids, text_places(engine, many), log_z.energy) / log_z.energy_temperature
    engine.check()
    return LogProbability(-known - log_z.estimate, -known - log_z.high, -known - log_z.low)


def anneal(
    engine: Engine,
    noise: Noise,
    canvas: Canvas,
    proposals: Proposals,
    energy: EnergyName,
    energy_temperature: float,
    levels: int,
    moves: int,
) -> tuple[Tensor, Tensor]:
    """(C,) the logarithm of each chain's weight, and the passes spent on it. exp of it is unbiased for Z."""
    canvas = canvas._replace(ids=canvas.ids.masked_fill(canvas.free, canvas.mask_id))
    ids, drawn, passes = fill(engine, noise, canvas, Drawing())
    places = text_places(engine, canvas)
    sentence = energies(engine, canvas, ids, places, energy)  # (C,)
    passes = passes + places.sum(1)
    now = torch.cat([sentence[:, None], -drawn], 1)  # (C, 1 + L): E(x), then −log p_0 of each place
    goal, base = torch.zeros(2, now.shape[1], dtype=torch.float64)
    goal[0], base[1:] = 1 / energy_temperature, 1.0
    log_weight = torch.zeros(len(ids), dtype=torch.float64)
    step = 0
    for level in range(1, levels + 1):
        gain = (potential(base, now) - potential(goal, now)) / levels
        log_weight = torch.where(log_weight == -torch.inf, log_weight, log_weight + gain)  # what is lost stays lost
        if level == levels:
            break
        share = level / levels
        for _ in range(moves):
            proposal = propose(engine, noise, canvas, ids, step, proposals, energy)
            measure = _both(engine, canvas, energy, now)
            decided = decide(noise, ids, step, proposal, now, (1 - share) * base + share * goal, measure)
            ids, now, passes, step = decided.ids, decided.energies, passes + decided.passes, step + 1
    return log_weight, passes


def summary(log_weights: Tensor) -> tuple[float, float, float]:
    """log of the mean weight, its standard error by the delta method, and the effective sample size."""
    count = len(log_weights)
    estimate = float(torch.logsumexp(log_weights, 0)) - math.log(count)
    if estimate == -math.inf:
        return estimate, math.inf, 0.0
    relative = (log_weights - estimate).exp()  # of mean 1
    return estimate, float(relative.std() / math.sqrt(count)), count**2 / float(relative.square().sum())


def left_to_right(engine: Engine, canvas: Canvas, ids: Tensor, asked: Tensor) -> Tensor:
    """(C, L) log p_0 of the tokens of ids (C, L) at the places asked (C, L, bool, on the host); 0 elsewhere."""
    row, place = asked.nonzero(as_tuple=True)  # (M,) each
    at = row.to(ids.device), place.to(ids.device)
    later = torch.arange(ids.shape[1], device=ids.device) >= at[1][:, None]  # (M, L)
    copies = ids[at[0]].masked_fill(canvas.free[at[0]] & later, canvas.mask_id)
    every, given = torch.arange(len(row)), canvas.given_to(row)
    told = draw(engine, copies, every, place, None, allowed=canvas.allowed, target=ids[at], given=given).target
    assert told is not None
    log_prob = torch.zeros(ids.shape, dtype=torch.float64)
    log_prob[row, place] = told.cpu().double()
    return log_prob


def _both(engine: Engine, canvas: Canvas, energy: EnergyName, now: Tensor) -> Measure:
    """The energy, and −log p_0 place by place: those before the first place that moved are what they were."""
    sentence, free = sentence_energy(engine, canvas, energy), canvas.free.cpu()

    def measure(rows: Tensor, proposal: Proposal) -> Measured:
        asked = free[rows] & (proposal.moved.cumsum(1) > 0)  # (R, L)
        some = canvas.rows(rows.to(canvas.ids.device))
        base = torch.where(asked, -left_to_right(engine, some, proposal.ids, asked), now[rows, 1:])
        known = sentence(rows, proposal)
        return Measured(torch.cat([known.energies, base], 1), known.passes + asked.sum(1))

    return measure


def _refuse_many(canvas: Canvas) -> None:
    refuse_no_places(canvas)
    if len(canvas.ids) != 1:
        raise BesagError(f"the canvas has {len(canvas.ids)} rows: give one, since each has a Z of its own")
