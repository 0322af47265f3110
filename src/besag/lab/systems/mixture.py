"""Two modes: with chance 1 − w every symbol is mostly 0, with chance w mostly 1. What slows a sampler, in two numbers.

p(x) = (1 − w) ∏_i q(x_i) + w ∏_i q(1 − x_i),   q(0) = 1 − ε, q(1) = ε;   θ = (logit w, logit(1 − ε))
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np

from besag.arrays import Floats
from besag.checks import checked, number, whole_number
from besag.lab.systems.system import Family


class TwoModes(Family):
    """A mixture of two products. Made by `two_modes`."""

    name = "two modes"
    parameters = ("logit w", "logit(1 − ε)")

    def __init__(self, places: int, theta: Floats) -> None:
        self.shape, self.theta = (2,) * places, theta

    @cached_property
    def _parts(self) -> tuple[Floats, Floats]:
        """(S, 2) log of each mode's share of p(x), and how many symbols agree with each mode."""
        ones = self.states.sum(1)
        agree = np.stack([self.places - ones, ones], 1).astype(np.float64)
        log_keep, log_flip = -np.logaddexp(0, -self.theta[1]), -np.logaddexp(0, self.theta[1])
        log_share = -np.logaddexp(0, np.array([self.theta[0], -self.theta[0]]))
        return np.asarray(log_share + agree * log_keep + (self.places - agree) * log_flip), agree

    def _log_weights(self) -> Floats:
        return np.asarray(np.logaddexp.reduce(self._parts[0], 1))

    @cached_property
    def scores(self) -> Floats:
        shares, agree = self._parts
        posterior = np.exp(shares - np.logaddexp.reduce(shares, 1)[:, None])  # (S, 2)
        weight, keep = 1 / (1 + np.exp(-self.theta))
        return np.stack([posterior[:, 1] - weight, (posterior * agree).sum(1) - self.places * keep], 1)

    def _at(self, theta: Floats) -> Self:
        return type(self)(self.places, theta)


@checked
def two_modes(places: int, weight: float = 0.5, flip: float = 0.1) -> TwoModes:
    """Sequences near 00…0 or near 11…1.

    Args:
        places: N.
        weight: w, the share of the mode of ones.
        flip: ε, the chance that a symbol differs from its mode.

    Returns:
        The family.

    Examples:
        >>> from besag.lab import two_modes
        >>> two_modes(2, flip=0.1).law.round(2)
        array([[0.41, 0.09],
               [0.09, 0.41]])
    """
    whole_number(places, "places", most=4096)
    share = number(weight, "weight", least=1e-12, most=1 - 1e-12)
    differs = number(flip, "flip", least=1e-12, most=1 - 1e-12)
    return TwoModes(places, np.array([np.log(share / (1 - share)), np.log((1 - differs) / differs)]))
