"""A power law through points: y = a · x^(−b), a straight line on two logarithmic axes.

    log y = log a − b · log x + ε,   b ± t(n − 2) · s / √Σ(log x − mean)²

Least squares of the logarithms; the interval is Student's, and holds if the points scatter about such a line. It knows
of no floor: a loss that cannot fall below some number bends away from it, and the fit says less than its interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from besag.errors import BesagError, require

LEAST = 3  # points: through two of them a line is always straight


class PowerLaw(NamedTuple):
    """y = coefficient · x^(−exponent)."""

    coefficient: float
    exponent: float  # > 0: y falls as x grows
    low: float  # of a 95 % interval of the exponent
    high: float
    points: int
    scatter: float  # standard deviation of log y about the line

    def __call__(self, x: float) -> float:
        return float(self.coefficient * x**-self.exponent)

    @property
    def words(self) -> str:
        """As a sentence of a report."""
        between = f"{self.low:.3g} to {self.high:.3g}"
        return f"falls as x^−{self.exponent:.3g} ({between}, {self.points} points, scatter {self.scatter:.2g})"


def power_law(x: Sequence[float], y: Sequence[float]) -> PowerLaw:
    """Fitted to points, all of them positive, at three different x or more."""
    if not all(math.isfinite(one) and one > 0 for one in (*x, *y)):
        raise BesagError("a power law goes through positive numbers only")
    if len(set(x)) < LEAST:
        raise BesagError(f"there are {len(set(x))} different sizes: a power law needs at least {LEAST}")
    across, up = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    centred = across - across.mean()
    spread = float(centred @ centred)
    slope = float(centred @ up) / spread
    rest = up - up.mean() - slope * centred
    scatter = math.sqrt(float(rest @ rest) / (len(across) - 2))
    student = require("scipy.stats", extra="eval").t
    half = float(student.ppf(0.975, len(across) - 2)) * scatter / math.sqrt(spread)
    start = math.exp(float(up.mean() - slope * across.mean()))
    return PowerLaw(start, -slope, -slope - half, -slope + half, len(across), scatter)
