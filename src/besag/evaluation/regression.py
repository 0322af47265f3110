"""What a predictor adds to a linear regression, judged on data that it was not fitted to.

Observations y, baselines X₀ and the predictor's columns beside them, X₁ ⊃ X₀, both with a constant. For each of K
folds, least squares on the others give β̂ and σ̂² = RSS / n (the likeliest Gaussian), and on the fold itself

    ℓ(y)  = −½ ln(2πσ̂²) − (y − xβ̂)² / 2σ̂²                          log-likelihood of an observation
    Δℓ    = Σ (ℓ₁ − ℓ₀) / n                                          gained by an observation, in nats
    ΔR²   = (SSE₀ − SSE₁) / SST,  SST = Σ (y − ȳ of the others)²     share of the variance

Both can be negative: what does not help on new data hurts. Groups (sentences) stand wholly in one fold, and those that
follow each other stay together. Knows arrays, and nothing of reading.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.errors import BesagError


class Gained(NamedTuple):
    """Of each observation, where it was held out."""

    log_likelihood: Floats  # (n,) ℓ₁ − ℓ₀
    baseline: Floats  # (n,) squared errors without the predictor
    full: Floats  # (n,) and with it
    total: Floats  # (n,) and of the others' mean

    @property
    def delta_log_likelihood(self) -> float:
        return float(self.log_likelihood.mean())

    @property
    def delta_r2(self) -> float:
        return float((self.baseline - self.full).sum() / self.total.sum())

    @property
    def r2(self) -> float:
        """Of the baselines alone."""
        return float(1 - self.baseline.sum() / self.total.sum())


def gained(y: Floats, baselines: Floats, predictor: Floats, groups: Ints, folds: int = 10) -> Gained:
    """What the predictor (n, q) adds to the baselines (n, p), fold by fold; `groups` (n,) are numbers that ascend."""
    fold = fold_of(groups, folds)
    constant = np.ones((len(y), 1))
    small = np.concatenate([constant, baselines], 1)  # (n, 1 + p)
    large = np.concatenate([small, predictor], 1)  # (n, 1 + p + q)
    out = [np.empty(len(y)) for _ in range(4)]
    for one in range(folds):
        held = fold == one
        if (~held).sum() <= large.shape[1]:
            raise BesagError(f"{int((~held).sum())} observations are too few to fit {large.shape[1]} coefficients to")
        errors, likelihoods = zip(*(_held_out(y, x, held) for x in (small, large)), strict=True)
        mean = y[~held].mean()
        found = (likelihoods[1] - likelihoods[0], errors[0] ** 2, errors[1] ** 2, (y[held] - mean) ** 2)
        for whole, part in zip(out, found, strict=True):
            whole[held] = part
    return Gained(*out)


def fold_of(groups: Ints, folds: int) -> Ints:
    """(n,) which fold each observation is in: neighbouring groups together, folds of about as many groups."""
    known, which = np.unique(groups, return_inverse=True)
    if len(known) < folds:
        raise BesagError(f"{len(known)} sentences cannot be put into {folds} folds: say fewer folds")
    return np.asarray(which * folds // len(known), np.int64)


def _held_out(y: Floats, x: Floats, held: Bools) -> tuple[Floats, Floats]:
    """Errors and log-likelihoods of the observations that are held out."""
    coefficients, *_ = np.linalg.lstsq(x[~held], y[~held], rcond=None)
    variance = float(((y[~held] - x[~held] @ coefficients) ** 2).mean())
    if variance <= 0:
        raise BesagError("the regression fits its data without any error, so that no likelihood can be said")
    error = y[held] - x[held] @ coefficients
    return error, -0.5 * np.log(2 * np.pi * variance) - error**2 / (2 * variance)
