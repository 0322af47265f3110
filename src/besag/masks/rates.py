"""How much of a passage is to be hidden: a number for each passage, from how far the run is and from its draw.

A rate knows neither tokens nor laws. Rates that differ from passage to passage are drawn with low discrepancy: draws
d, d+1, d+2, … are spread over (0, 1) by the golden ratio, u_d = offset + 0.618… d mod 1, so that any batch of
consecutive draws is stratified, however many processes share them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from besag import noise
from besag.arrays import Floats, Ints
from besag.checks import checked, is_number
from besag.errors import BesagError, nearest, quoted
from besag.noise import Training

_GOLDEN = np.uint64(2_654_435_769)  # 2³² (√5 − 1) / 2, made odd: every one of 2³² draws has a place of its own
RATE_LAWS = ("constant", "linear", "cosine", "beta", "uniform")
LEAST = 1e-3  # of a rate that is drawn: a passage with nothing hidden teaches nothing


class Rate(ABC):
    @abstractmethod
    def at(self, progress: float, draw: Ints, seed: int) -> Floats:
        """(R,) the share of each passage that is to be hidden; `progress` runs from 0 to 1, `draw` is (R,)."""


@dataclass(frozen=True)
class Constant(Rate):
    rate: float

    def __post_init__(self) -> None:
        _check(self.rate, "a rate")

    def at(self, progress: float, draw: Ints, seed: int) -> Floats:
        return np.full(len(draw), self.rate)


@dataclass(frozen=True)
class Linear(Rate):
    """From `start` to `end` in a straight line, after `hold` of the run at `start`.

    Linear(2p, 0) is the linear decay of Yang et al. 2023, whose mean over the run is p.
    """

    start: float
    end: float
    hold: float = 0.0

    def __post_init__(self) -> None:
        _check(self.start, "the rate at the start")
        _check(self.end, "the rate at the end", zero=True)
        if not is_number(self.hold) or not 0 <= self.hold < 1:
            raise BesagError(
                f"hold is {quoted(self.hold)}: the share of the run before the rate moves, from 0 to below 1."
            )

    def at(self, progress: float, draw: Ints, seed: int) -> Floats:
        moved = min(max((progress - self.hold) / (1 - self.hold), 0.0), 1.0)
        return np.full(len(draw), self.end + (self.start - self.end) * self.left(moved))

    def left(self, moved: float) -> float:
        """How much of the way is still to go, from 1 to 0."""
        return 1 - moved


@dataclass(frozen=True)
class Cosine(Linear):
    """The same along half a cosine: slow, fast, slow.

    Cosine(2p + 0.02, 0.02) is p (1 + cos πt/T) + 0.02, the masking ratio decay of Yang et al. 2023.
    """

    def left(self, moved: float) -> float:
        return float((1 + np.cos(np.pi * moved)) / 2)


@dataclass(frozen=True)
class Uniform(Rate):
    """Each passage its own rate, uniform from `low` to `high`: the time of a masked diffusion."""

    low: float = LEAST
    high: float = 1.0

    def __post_init__(self) -> None:
        _check(self.low, "the lowest rate", zero=True)
        _check(self.high, "the highest rate")

    def at(self, progress: float, draw: Ints, seed: int) -> Floats:
        rate: Floats = self.low + (self.high - self.low) * spread(draw, seed)
        return rate


@dataclass(frozen=True)
class Beta(Rate):
    """Each passage its own rate, from the Beta(a, b) law: FiLM's, which is asked about any share of hidden places."""

    a: float = 2.5
    b: float = 2.5

    def __post_init__(self) -> None:
        if not (self.a >= 0.5 and self.b >= 0.5):
            raise BesagError(f"Beta({self.a}, {self.b}) is not known here: both numbers must be at least 0.5.")

    def at(self, progress: float, draw: Ints, seed: int) -> Floats:
        angle, mass = _beta_table(self.a, self.b)
        rate: Floats = np.sin(np.interp(spread(draw, seed), mass, angle)) ** 2
        return np.maximum(rate, LEAST)


def spread(draw: Ints, seed: int) -> Floats:
    """(R,) in (0, 1), evenly over any run of consecutive draws; each alone is uniform over seeds."""
    golden = (np.asarray(draw).astype(np.uint64) * _GOLDEN) & np.uint64(0xFFFFFFFF)
    u: Floats = (golden.astype(np.float64) * 2.0**-32 + noise.uniform(seed, Training.RATE, 0)) % 1.0
    return np.maximum(u, 2.0**-53)


@checked
def rate_named(rate_law: str, rate: float, end_rate: float | None = None, hold: float = 0.0) -> Rate:
    """The rate a recipe speaks of. "beta" and "uniform" draw a rate for each passage, and make no use of `rate`.

    >>> rate_named("linear", 0.4, end_rate=0.2).at(0.5, np.arange(2), seed=0)
    array([0.3, 0.3])
    """
    moving = {"linear": Linear, "cosine": Cosine}
    if isinstance(rate_law, str) and rate_law in moving:
        if end_rate is None:
            raise BesagError(f"the rate law {rate_law!r} needs end_rate: where the rate goes from {rate}.")
        return moving[rate_law](rate, end_rate, hold)
    if rate_law not in RATE_LAWS:
        names = ", ".join(RATE_LAWS)
        guess = nearest(rate_law, RATE_LAWS) if isinstance(rate_law, str) else ""
        raise BesagError(f"there is no rate law {quoted(rate_law)}: {names}.{guess}")
    if end_rate is not None or hold:
        raise BesagError(f"the rate law {rate_law!r} does not move: end_rate and hold are for linear and cosine.")
    return {"constant": Constant(rate), "beta": Beta(), "uniform": Uniform()}[rate_law]


@lru_cache(maxsize=8)
def _beta_table(a: float, b: float, cells: int = 8192) -> tuple[Floats, Floats]:
    """The distribution function of Beta(a, b) at x = sin²θ: there its density sin^(2a−1) cos^(2b−1) is bounded."""
    angle = np.linspace(0, np.pi / 2, cells + 1)
    middle = (angle[1:] + angle[:-1]) / 2
    mass = np.append(0, np.cumsum(np.sin(middle) ** (2 * a - 1) * np.cos(middle) ** (2 * b - 1)))
    return angle, mass / mass[-1]


def _check(share: float, what: str, zero: bool = False) -> None:
    if not is_number(share) or not (0 <= share <= 1 and (share > 0 or zero)):
        raise BesagError(
            f"{what} is {quoted(share)}: it is a share of the tokens, above 0 and at most 1 (0.3 for 30 %)."
        )
