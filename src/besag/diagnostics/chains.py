"""Numbers of chains: do they agree, how many independent draws are they worth, how long do they remember.

A trace is one number for each chain and step, (C, S): an energy, a log-probability, how many tokens changed, or 1 where
a token stands and 0 where another does. With W the mean variance within chains and V⁺ = W (S − 1)/S + the variance of
their means,

    ρ_k         1 − (W − γ_k) / V⁺                 γ_k: autocovariance at lag k, the mean over chains
    time        −1 + 2 Σ_m (ρ_2m + ρ_2m+1)         pairs up to the first negative one, made non-increasing (Geyer)
    ESS         C S / time                         bulk: of normal scores of the ranks; tail: of 1[x ≤ q] for the 5 %
                                                   and 95 % quantiles q, the smaller one
    R-hat       √(V⁺ / W)                          of normal scores of the ranks, and of those of |x − median|, the
                                                   larger one
    relaxation  (time + 1) / 2

all on chains cut in halves, so that one that drifts disagrees with itself (Vehtari et al. 2021). In a reversible chain
with gap 1 − λ every function has time ≤ (1 + λ)/(1 − λ), so `relaxation` is at most 1/(1 − λ) and reaches it for the
slowest function. It is a lower bound of what is not known, never a proof that a chain has mixed: chains that all miss
the same mode agree perfectly.

How far the law of the chains still is from where they end up, how long they take to reach a state, and the exact
answers for a chain whose transition matrix is known, are in `mixing.py`. Knows no sampler and no text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from besag.arrays import Floats, Ints
from besag.checks import array, checked, is_whole
from besag.errors import BesagError, quoted
from besag.results import data
from besag.results.data import describe, json_ready
from besag.results.grid import Grid
from besag.results.grid import lines as lines_of
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import amount, counted, number

if TYPE_CHECKING:
    from pandas import DataFrame


LEAST_STEPS = 8  # halves of four
AGREE = 1.01  # the R-hat below which Vehtari et al. take chains to agree
SLOWEST = 5  # places in a table
TAILS = (0.05, 0.95)
AGREED = "the chains agree; what none of them has seen is not known"


class Line(NamedTuple):
    """What one trace says. Where a number cannot be had it is nan, and `reason` says why."""

    name: str
    mean: float
    sd: float
    error: float  # standard error of the mean: sd / √(C S / time)
    ess_bulk: float
    ess_tail: float
    rhat: float
    time: float  # integrated autocorrelation time, in steps
    relaxation: float  # a lower bound of the relaxation time of a reversible chain, in steps
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Presented):
    traces: tuple[Line, ...]
    places: tuple[Line, ...]  # of each place that moved: 1 where its commonest token stands
    still: int  # places whose token never changed in any chain
    chains: int
    steps: int  # that were looked at
    warmup: int  # steps before them that were left out

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.traces + self.places

    @property
    def slowest(self) -> list[Line]:
        """Places by their effective sample size, the smallest first."""
        known = [line for line in self.places if line.ess_bulk == line.ess_bulk]
        return sorted(known, key=lambda line: line.ess_bulk)

    @property
    def rhat(self) -> float:
        """The largest of all; nan where there is none."""
        return max((line.rhat for line in self.lines if line.rhat == line.rhat), default=math.nan)

    @property
    def ess(self) -> float:
        """The smallest of all, bulk and tail."""
        sizes = [size for line in self.lines for size in (line.ess_bulk, line.ess_tail) if size == size]
        return min(sizes, default=math.nan)

    @property
    def verdict(self) -> str:
        """What the numbers allow to say, in words."""
        least = 100 * self.chains
        if self.rhat != self.rhat:
            return "nothing can be said: " + (self.lines[0].reason if self.lines else "no place moved")
        if self.rhat > AGREE:
            return f"the chains do not agree yet: R-hat {number(self.rhat, 3)} is above {AGREE}"
        broken = [line for line in self.traces if "not finite" in line.reason]
        if broken:
            return f"{broken[0].name} cannot be judged: {broken[0].reason}"
        if self.ess < least:
            return f"the chains agree, but {amount(self.ess)} effective draws are few: {least} would be safer"
        return AGREED

    @property
    def status(self) -> Status:
        """Unsure, unless the chains agree and are worth enough draws."""
        return Status.OK if self.verdict == AGREED else Status.UNSURE

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        shown = min(SLOWEST, len(self.slowest))
        return [
            self.verdict,
            f"{counted(self.chains, 'chain')} of {counted(self.steps, 'step')}"
            + (f" after {self.warmup:,} left out" if self.warmup else ""),
            *(["one chain: R-hat compares its two halves"] if self.chains == 1 else []),
            *([f"the slowest {shown} of {len(self.places)} places"] if len(self.places) > shown else []),
            *([f"{counted(self.still, 'place')} never moved"] if self.still else []),
            "time: autocorrelation time in steps",
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON; what could not be had is None."""
        names = ("chains", "steps", "warmup", "rhat", "ess", "verdict", "traces", "places", "still")
        return dict(json_ready({**self._answers(), **{name: getattr(self, name) for name in names}}))

    def to_pandas(self) -> DataFrame:
        """One row a trace or place."""
        names = ("chains", "steps", "warmup", "still", "verdict")
        about = {name: getattr(self, name) for name in names}
        return describe(data.frame(self, self.lines, Line._fields).set_index("name"), self, **about)

    def _grids(self) -> list[Grid]:
        shown = [*self.traces, *self.slowest[:SLOWEST]]
        head = ("", "mean", "± error", "sd", "ESS bulk", "tail", "R-hat", "time", "")
        rows = [[line.name, *_cells(line), line.reason] for line in shown]
        return [Grid(head, lines_of(rows), left=(0, 8))]


@checked
def diagnose(
    traces: Mapping[str, ArrayLike] | ArrayLike | None = None,
    tokens: ArrayLike | None = None,
    *,
    name: str = "trace",
    warmup: int = 0,
    places: Sequence[str] | None = None,
) -> Diagnosis:
    """Every number of one trace (C, S) called `name`, or of several by name; and of token ids (C, S, L).

    Of token ids it looks at how many change in a step, and at each place at the indicator of its commonest token: ids
    are names, and averaging them would say nothing. `places` (L,) says what the places are called. The first `warmup`
    steps are left out.
    """
    given = {} if traces is None else traces if isinstance(traces, Mapping) else {name: traces}
    found = {key: check(trace, key) for key, trace in given.items()}
    ids = None if tokens is None else check_ids(tokens)
    shapes = {trace.shape for trace in found.values()} | ({ids.shape[:2]} if ids is not None else set())
    if not shapes:
        raise BesagError("there is nothing to diagnose: give traces (C, S) by name, or token ids (C, S, L)")
    chains, steps = max(shapes)
    if {shape[0] for shape in shapes} != {chains} or min(shapes)[1] < steps - 1:
        raise BesagError(f"traces of one run have one shape (chains, steps); these have {sorted(shapes)}")
    if not is_whole(warmup, 0) or warmup >= steps:
        raise BesagError(f"warmup={quoted(warmup)}: leave out at least 0 and fewer than all {steps} steps")
    moved, still = list[Line](), 0
    if ids is not None:
        kept = ids[:, warmup:]
        if "changed" not in found and kept.shape[1] > 1:
            found["changed"] = (ids[:, 1:] != ids[:, :-1]).sum(2).astype(np.float64)
        called = places or [f"place {place}" for place in range(ids.shape[2])]
        if len(called) != ids.shape[2]:
            raise BesagError(f"{len(called)} names were given for {ids.shape[2]} places")
        moves = (kept != kept[:1, :1]).any((0, 1))  # (L,)
        still = int((~moves).sum())
        moved = [line(called[place], indicator(kept[:, :, place])) for place in np.flatnonzero(moves).tolist()]
    lines = [line(key, trace[:, max(0, warmup - steps + trace.shape[1]) :]) for key, trace in found.items()]
    return Diagnosis(tuple(lines), tuple(moved), still, chains, steps - warmup, warmup)


def line(name: str, trace: Floats) -> Line:
    """All numbers of one trace (C, S), or why there are none."""
    strange = int((~np.isfinite(trace)).sum())
    unknown = (math.nan,) * 8
    if strange:
        missing = np.isnan(trace)
        ended = missing.sum() == strange and not (missing[:, :-1] & ~missing[:, 1:]).any()
        told = "the chains end at different steps" if ended else f"{counted(strange, 'number')} not finite"
        return Line(name, *unknown, reason=told)
    mean, steps = float(trace.mean()), trace.shape[1]
    sd = float(trace.std(ddof=1)) if trace.size > 1 else math.nan
    if steps < LEAST_STEPS:
        return Line(name, mean, sd, *unknown[2:], reason=f"fewer than {LEAST_STEPS} steps")
    if constant(trace):
        return Line(name, mean, 0.0, *unknown[2:], reason="it never changes")
    time = integrated_time(trace)
    stuck = bool((np.ptp(trace, 1) == 0).all())
    return Line(
        name,
        mean,
        sd,
        sd * math.sqrt(time / trace.size),
        ess_bulk(trace),
        ess_tail(trace),
        rhat(trace),
        time,
        (time + 1) / 2,
        "each chain stays where it is" if stuck else "",
    )


# ---- the numbers


def rhat(trace: ArrayLike) -> float:
    """Rank-normalised split R-hat; nan for a constant or a short trace, infinite where no half of a chain moves."""
    halves = split(check(trace))
    if 2 * halves.shape[1] < LEAST_STEPS or constant(halves):
        return math.nan
    return max(_rhat(normal_scores(halves)), _rhat(normal_scores(np.abs(halves - np.median(halves)))))


def ess_bulk(trace: ArrayLike) -> float:
    """Effective sample size for the middle of the law: means and medians."""
    halves = split(check(trace))
    return math.nan if 2 * halves.shape[1] < LEAST_STEPS else halves.size / _time(normal_scores(halves))


def ess_tail(trace: ArrayLike) -> float:
    """Effective sample size for the 5 % and 95 % quantiles, the smaller one; nan where both cut nothing off."""
    checked = check(trace)
    if checked.shape[1] < LEAST_STEPS:
        return math.nan
    below = [split((checked <= np.quantile(checked, share)).astype(np.float64)) for share in TAILS]
    return min((one.size / _time(one) for one in below if not constant(one)), default=math.nan)


def integrated_time(trace: ArrayLike) -> float:
    """1 + 2 Σ ρ_k of the trace itself, in steps: so many steps are worth one independent draw of its mean."""
    halves = split(check(trace))
    return math.nan if 2 * halves.shape[1] < LEAST_STEPS else _time(halves)


def autocorrelation(trace: ArrayLike, most: int | None = None) -> Floats:
    """ρ_0 … ρ_most, (K,), over all chains; nan where nothing moves. Chains that disagree never forget: ρ stays high."""
    checked = check(trace)
    lags = checked.shape[1] if most is None else min(most + 1, checked.shape[1])
    if checked.shape[1] < 2 or constant(checked):
        return np.full(lags, np.nan)
    return _correlations(checked)[:lags]


def indicator(categories: ArrayLike) -> Floats:
    """(C, S) 1 where the commonest of some categories (C, S) stands."""
    values = np.asarray(categories)
    kinds, counts = np.unique(values, return_counts=True)
    return np.asarray(values == kinds[counts.argmax()], dtype=np.float64)


# ---- how they are computed


def check(trace: ArrayLike, name: str = "a trace") -> Floats:
    values = array(trace, name)
    values = values[None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size:
        raise BesagError(f"{name} needs the shape (chains, steps); got {np.shape(trace)}")
    return values


def check_ids(tokens: ArrayLike) -> Ints:
    ids = np.asarray(tokens)
    if ids.ndim != 3 or not ids.size or ids.dtype.kind not in "iu":
        raise BesagError(f"token ids are whole numbers of shape (chains, steps, places); got {ids.dtype} {ids.shape}")
    return ids.astype(np.int64)


def constant(trace: Floats) -> bool:
    return bool((trace == trace.flat[0]).all())


def split(trace: Floats) -> Floats:  # (C, S) -> (2 C, S // 2)
    """Chains cut in halves; of an odd number of steps the middle one is left out."""
    half = trace.shape[1] // 2
    return np.concatenate([trace[:, :half], trace[:, trace.shape[1] - half :]])


def normal_scores(values: Floats) -> Floats:
    """Φ⁻¹((rank − 3/8) / (n + 1/4)): the same order, a normal law; equals share their mean rank."""
    _, kind, counts = np.unique(values, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[kind]
    scores = torch.special.ndtri(torch.from_numpy((rank - 0.375) / (values.size + 0.25)))
    return np.asarray(scores.reshape(values.shape).numpy())


def _variances(trace: Floats) -> tuple[float, float]:
    """W and V⁺."""
    steps = trace.shape[1]
    within = float(trace.var(1, ddof=1).mean())
    between = float(trace.mean(1).var(ddof=1)) if len(trace) > 1 else 0.0
    return within, within * (steps - 1) / steps + between


def _rhat(trace: Floats) -> float:
    within, overall = _variances(trace)
    if within > 0:
        return math.sqrt(overall / within)
    return math.inf if overall > 0 else math.nan


def _correlations(trace: Floats) -> Floats:  # (S,)
    within, overall = _variances(trace)
    steps = trace.shape[1]
    centred = trace - trace.mean(1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * steps)  # padded, so that ends do not meet
    covariance = np.fft.irfft(spectrum * spectrum.conj(), n=2 * steps)[:, :steps].mean(0) / steps
    correlations = np.asarray(1 - (within - covariance) / overall)
    correlations[0] = 1.0
    return correlations


def _time(trace: Floats) -> float:
    if constant(trace):
        return math.nan
    correlations = _correlations(trace)
    pairs = correlations[: (len(correlations) - 1) // 2 * 2].reshape(-1, 2).sum(1)  # ρ_2m + ρ_2m+1
    negative = np.flatnonzero(pairs < 0)
    kept = int(negative[0]) if len(negative) else len(pairs) - 1
    time = 2 * np.minimum.accumulate(pairs[:kept]).sum() - 1 + max(correlations[2 * kept], 0.0)
    return float(max(time, 1 / math.log10(trace.size)))  # chains that overshoot are worth more than independent draws


def _cells(line: Line) -> list[str]:
    def plain(value: float, digits: int) -> str:
        return "" if value != value else number(value, digits)

    sizes = ["" if size != size else f"{size:,.0f}" for size in (line.ess_bulk, line.ess_tail)]
    error = "" if line.error != line.error else f"± {number(line.error, 3)}"
    return [plain(line.mean, 3), error, plain(line.sd, 3), *sizes, plain(line.rhat, 3), plain(line.time, 1)]
