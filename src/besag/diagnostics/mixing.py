"""How fast chains forget where they began: what can be seen of many chains, and what is exact for a known matrix.

Seen, of a category such as the token at a place, over C chains that began anywhere:

    d(s) = ½ Σ_v |share of chains at v after s steps − late(v)|        late: all chains over the last half of the steps

C draws from `late` itself would not give 0 but, on average, floor = ½ Σ_v E|B_v/C − late(v)|, B_v binomial; E|…| is
known in closed form (de Moivre). So d(s) is to be read against the floor. It needs many chains and no coupling; it says
nothing about what all chains still agree in not having seen.

Hitting times: the first step, counted from 0, at which something holds; a chain in which it never did is censored, not
left out, since leaving it out makes times look short.

Exact, of a row-stochastic matrix P with stationary law π:

    gap         1 − |λ₂|, relaxation time 1/gap
    t(ε)        min { t : max_x ½ Σ_y |P^t(x, y) − π(y)| ≤ ε }
    hitting     h(x) = 0 in the set, else 1 + Σ_y P(x, y) h(y)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from besag.arrays import Bools, Floats, Ints
from besag.checks import array, checked, is_number
from besag.errors import BesagError, quoted, require
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, lines
from besag.results.plots import BARS, GREY, caption
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

EPSILON = 0.25  # the usual one
LONGEST = 2**40  # steps after which a chain is said not to mix
ROUNDING = 1e-10


# ---- seen


@dataclass(frozen=True, eq=False, repr=False)
class Approach(Presented):
    """How far the law of the chains at each step is from where they are later."""

    distance: Floats  # (S,) total variation
    floor: float  # what chains that had arrived would show on average
    late: Floats  # (K,) the law of the last steps, over the categories in order
    chains: int

    @checked
    def step(self, epsilon: float = EPSILON) -> int | None:
        """The first step from which the distance stays within epsilon of the floor; None if it never does."""
        beyond = np.flatnonzero(self.distance > self.floor + epsilon)
        after = int(beyond[-1]) + 1 if len(beyond) else 0
        return after if after < len(self.distance) else None

    @property
    def status(self) -> Status:
        """Unsure, where the chains are still on their way at the end."""
        return Status.OK if self.step() is not None else Status.UNSURE

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the distances, most important first."""
        step = self.step()
        near = f"within {EPSILON} of the floor"
        return [
            f"{near} from step {step:,} on"
            if step is not None
            else f"not yet {near} after {len(self.distance):,} steps",
            f"floor {number(self.floor, 3)}: what {counted(self.chains, 'chain')} that had arrived would show",
            "total variation from the law of the last half of the steps",
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        return dict(json_ready({**self._answers(), **vars(self), "step": self.step()}))

    def to_pandas(self) -> DataFrame:
        """One row a step."""
        rows = {"step": np.arange(len(self.distance)), "distance": self.distance}
        return data.frame(self, rows, floor=self.floor, chains=self.chains)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """The distance over the steps, and the floor it comes down to."""
        if ax is None:
            _, ax = require("matplotlib.pyplot", extra="plot").subplots(figsize=(6.4, 3.2), layout="constrained")
        ax.plot(self.distance, color=BARS[0])
        ax.axhline(self.floor, color=GREY, linewidth=1, linestyle="--")
        ax.set_xlabel("step")
        ax.set_ylabel("total variation")
        ax.set_ylim(bottom=0)
        ax.spines[["top", "right"]].set_visible(False)
        caption(ax, self.facts)
        return ax

    def _grids(self) -> list[Grid]:
        shown = np.unique(np.geomspace(1, len(self.distance), 8).astype(int)) - 1
        rows = [(f"{at:,}", number(float(self.distance[at]), 3)) for at in shown.tolist()]
        return [Grid(("step", "distance"), lines(rows))]


@checked
def approach(categories: ArrayLike) -> Approach:
    """Of a category of each chain at each step, (C, S): the token at a place, or any function of the state."""
    values = np.asarray(categories)
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] < 2:
        raise BesagError(
            f"a law is seen in many chains at a time: give categories of shape (chains, steps), two of each at least; "
            f"got {values.shape}"
        )
    chains, steps = values.shape
    kinds, which = np.unique(values, return_inverse=True)
    which = which.reshape(values.shape)
    late = np.bincount(which[:, steps // 2 :].ravel(), minlength=len(kinds)) / (chains * (steps - steps // 2))
    flat = which + len(kinds) * np.arange(steps)  # one number for each (step, category)
    shares = np.bincount(flat.ravel(), minlength=steps * len(kinds)).reshape(steps, len(kinds)) / chains
    floor = 0.5 * sum(_mean_deviation(chains, share) for share in late.tolist())
    return Approach(0.5 * np.abs(shares - late).sum(1), floor, late, chains)


def _mean_deviation(n: int, p: float) -> float:
    """E|B/n − p| for B binomial(n, p): 2/n · (1−p)^(n−m) p^(m+1) (m+1) C(n, m+1), m = ⌊n p⌋."""
    if p in (0, 1):
        return 0.0
    m = min(math.floor(n * p), n - 1)
    choose = math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m)  # (m+1) C(n, m+1) = n! / (m! (n−m−1)!)
    return 2 / n * math.exp(choose + (n - m) * math.log1p(-p) + (m + 1) * math.log(p))


# ---- hitting


@dataclass(frozen=True, eq=False, repr=False)
class Hitting(Presented):
    """When each chain first came there."""

    times: Ints  # (C,) in steps; the number of steps seen, where it did not
    hit: NDArray[np.bool_]  # (C,)
    steps: int  # seen of each chain, so that the last possible time is steps − 1

    @property
    def share(self) -> float:
        return float(self.hit.mean())

    @property
    def median(self) -> float:
        """Infinite where fewer than half of the chains came there: it is then above what was seen."""
        ordered = np.sort(np.where(self.hit, self.times, np.inf))
        return float(ordered[(len(ordered) - 1) // 2])

    @property
    def restricted_mean(self) -> float:
        """The mean of min(time, steps): what can be had without guessing about chains that did not come there."""
        return float(np.minimum(self.times, self.steps).mean())

    @property
    def status(self) -> Status:
        """Unsure, where fewer than half of the chains came there."""
        return Status.OK if math.isfinite(self.median) else Status.UNSURE

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the times, most important first."""
        censored = int((~self.hit).sum())
        median = number(self.median, 0) if math.isfinite(self.median) else f"more than {self.steps - 1}"
        return [
            f"median {median} steps",
            f"mean of min(time, {self.steps}) {number(self.restricted_mean, 1)}",
            f"{int(self.hit.sum())} of {counted(len(self.hit), 'chain')}"
            + (f"; {counted(censored, 'chain')} did not come there" if censored else ""),
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("times", "hit", "steps", "share", "median", "restricted_mean")
        return dict(json_ready({**self._answers(), **{name: getattr(self, name) for name in names}}))

    def to_pandas(self) -> DataFrame:
        """One row a chain."""
        return data.frame(self, {"time": self.times, "hit": self.hit}, steps=self.steps)

    def _grids(self) -> list[Grid]:
        return []


@checked
def hitting(states: ArrayLike, when: Callable[[NDArray[np.generic]], ArrayLike] | ArrayLike) -> Hitting:
    """The first step, from 0, at which each chain is in a state, in one of several, or where a predicate holds.

    States are (C, S), or (C, S, L) for token ids. `when` is a state (a number, or (L,) ids), several of them (one more
    axis in front), or a function that is given all states and says where it holds, (C, S).
    """
    array = np.asarray(states)
    if array.ndim not in (2, 3) or not array.size:
        raise BesagError(f"states have the shape (chains, steps) or (chains, steps, places); got {array.shape}")
    if callable(when):
        holds = np.asarray(when(array))
    else:
        wanted = np.asarray(when)
        wanted = wanted[None] if wanted.ndim == array.ndim - 2 else wanted
        if wanted.ndim != array.ndim - 1 or (array.ndim == 3 and wanted.shape[1] != array.shape[2]):
            raise BesagError(f"a state has the shape {array.shape[2:]}; got {np.shape(when)}")
        same = array[:, :, None] == wanted  # (C, S, k) or (C, S, k, L)
        holds = (same if array.ndim == 2 else same.all(-1)).any(-1)
    if holds.shape != array.shape[:2] or holds.dtype != np.bool_:
        raise BesagError(
            f"a predicate answers True or False for each of {array.shape[:2]}; got {holds.dtype} {holds.shape}"
        )
    hit = np.asarray(holds.any(1))
    times = np.where(hit, holds.argmax(1), array.shape[1])
    return Hitting(times.astype(np.int64), hit, array.shape[1])


# ---- exact


@dataclass(frozen=True, eq=False, repr=False)
class Mixing(Presented):
    """What is exact of a chain with a known transition matrix."""

    law: Floats  # (N,) stationary; nan where there are several
    second: float  # the second largest modulus of an eigenvalue
    gap: float  # 1 − second
    relaxation: float  # 1 / gap, in steps
    time: float  # t(ε), in steps; infinite where it never mixes
    epsilon: float
    reversible: bool  # does the law meet detailed balance?
    reason: str = ""  # why it does not mix

    @property
    def status(self) -> Status:
        return Status.NEVER_MIXES if self.reason else Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the chain, most important first."""
        kind = "reversible" if self.reversible else "not reversible"
        if self.reason:
            return [kind, f"it never mixes: {self.reason}"]
        return [
            kind,
            f"gap {self.gap:.4g}, relaxation time {self.relaxation:,.2f} steps",
            f"within {self.epsilon} of its law after {self.time:,.0f} steps, from wherever it begins",
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        return dict(json_ready({**self._answers(), **vars(self)}))

    def to_pandas(self) -> DataFrame:
        """One row a state: its probability in the long run."""
        numbers = {name: getattr(self, name) for name in ("gap", "relaxation", "time", "epsilon", "reversible")}
        return data.frame(self, {"state": np.arange(len(self.law)), "law": self.law}, **numbers)

    def _grids(self) -> list[Grid]:
        return []


@checked
def exact_mixing(transition: ArrayLike, epsilon: float = EPSILON) -> Mixing:
    """Stationary law, spectral gap and mixing time in total variation of a row-stochastic matrix (N, N)."""
    matrix = _stochastic(transition)
    if not is_number(epsilon) or not 0 < epsilon < 1:
        raise BesagError(f"epsilon={quoted(epsilon)}: a total variation to reach lies between 0 and 1")
    sizes = np.sort(np.abs(np.linalg.eigvals(matrix)))[::-1]
    second = float(min(sizes[1], 1.0)) if len(sizes) > 1 else 0.0
    system = np.vstack([matrix.T - np.eye(len(matrix)), np.ones(len(matrix))])
    law, _, rank, _ = np.linalg.lstsq(system, np.append(np.zeros(len(matrix)), 1.0), rcond=ROUNDING)
    if rank < len(matrix):
        return Mixing(np.full(len(matrix), np.nan), 1.0, 0.0, math.inf, math.inf, epsilon, False, "several laws stay")
    law = np.clip(law, 0, None) / np.clip(law, 0, None).sum()
    flow = law[:, None] * matrix
    reversible = bool(np.abs(flow - flow.T).max() < ROUNDING)
    if second > 1 - ROUNDING:
        return Mixing(law, 1.0, 0.0, math.inf, math.inf, epsilon, reversible, "it is periodic")
    time = _time(matrix, law, epsilon)
    reason = "" if time < math.inf else f"more than {LONGEST:,} steps"
    return Mixing(law, second, 1 - second, 1 / (1 - second), time, epsilon, reversible, reason)


@checked
def exact_hitting(transition: ArrayLike, states: ArrayLike) -> Floats:
    """(N,) expected steps from each state until one of `states` is reached; infinite where it may never be."""
    matrix = _stochastic(transition)
    wanted = array(states, "states")
    if not np.isin(wanted, np.arange(len(matrix))).all():
        raise BesagError(f"states={quoted(states)}: give numbers of states, from 0 to {len(matrix) - 1}")
    inside = np.zeros(len(matrix), bool)
    inside[wanted.astype(int)] = True
    moves = matrix > 0
    lost = ~_led(moves, inside, np.ones_like(inside))  # from which the set can not be reached at all
    lost = _led(moves, lost, ~inside)  # … and those that may fall where it cannot be
    walks = ~inside & ~lost
    steps = np.where(lost, np.inf, 0.0)
    steps[walks] = np.linalg.solve(np.eye(int(walks.sum())) - matrix[np.ix_(walks, walks)], np.ones(int(walks.sum())))
    return steps


def _led(moves: Bools, states: Bools, through: Bools) -> Bools:
    """(N,) these states, and all among `through` from which moves lead to them."""
    while (wider := states | (through & moves[:, states].any(1))).sum() > states.sum():
        states = wider
    return states


def _stochastic(transition: ArrayLike) -> Floats:
    matrix = array(transition, "transition")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise BesagError(f"a transition matrix is square, one row a state; got the shape {matrix.shape}")
    if not (matrix >= 0).all() or np.abs(matrix.sum(1) - 1).max() > 1e-8:
        raise BesagError("the rows of a transition matrix are laws: no negative entry, and each sums to 1")
    return matrix


def _time(matrix: Floats, law: Floats, epsilon: float) -> float:
    """The least t: the distance never grows with t, so powers 2^k bracket it and halving finds it."""

    def far(power: Floats) -> bool:
        return bool(0.5 * np.abs(power - law).sum(1).max() > epsilon)

    if not far(np.eye(len(matrix))):
        return 0.0
    powers = [matrix]
    while far(powers[-1]):
        if 2 ** len(powers) > LONGEST:
            return math.inf
        powers.append(powers[-1] @ powers[-1])
    reached, steps = np.eye(len(matrix)), 0
    for k in range(len(powers) - 1, -1, -1):  # the largest number of steps after which it is still far
        if far(reached @ powers[k]):
            reached, steps = reached @ powers[k], steps + 2**k
    return float(steps + 1)
