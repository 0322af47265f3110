"""Log-linear combination: which hypothesis of each list has the highest

    s(h) = s_first(h) + Σ_k λ_k · s_k(h) / ℓ(n_k(h))

with s_first the first pass's score, s_k the k-th language model's and n_k its tokens of h. The norm ℓ is 1 ("none"),
n ("length") or ((5 + n) / 6)^α ("gnmt", Wu et al. 2016). Only language models are normalised. Of equals the one listed
earlier wins, and λ = 0 is the first pass. A list of which a hypothesis has no s_k is left as it was by λ_k.

A score s_k = −∞ (an exact model gives a text the probability 0) makes s(h) = −∞ for every λ_k > 0, so that h loses to
every hypothesis with a finite score. 0 · (−∞) = 0: with λ_k = 0 the model has no influence.

Arrays are (U, H) for U lists of at most H hypotheses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Floats, Ints
from besag.rescoring.metrics import Metric

Length = Literal["none", "length", "gnmt"]


def normalised(totals: Floats, tokens: Floats, length: Length, alpha: float = 1.0) -> Floats:
    """Language-model scores over their norm; a text without tokens has no score."""
    if length == "none":
        return totals
    norm = tokens if length == "length" else ((5 + tokens) / 6) ** alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(tokens > 0, totals / norm, np.nan)


@dataclass(frozen=True)
class Board:
    """All that ranking needs to know."""

    first: Floats  # (U, H), −∞ where a list is shorter
    added: Floats  # (K, U, H), 0 there; −∞ for probability 0; nan where a hypothesis has no score
    statistics: Floats | None  # (U, H, k) of the metric; None without references

    def __post_init__(self) -> None:
        gaps = np.isnan(self.added).any(2, keepdims=True)  # (K, U, 1)
        object.__setattr__(self, "added", np.where(gaps, 0.0, self.added))

    @cached_property
    def impossible(self) -> NDArray[np.bool_]:
        """(K, U, H) whether the score of a language model is −∞."""
        return np.isneginf(self.added)

    @cached_property
    def finite(self) -> Floats:
        """(K, U, H) the scores of the language models, with 0 for −∞."""
        return np.where(self.impossible, 0.0, self.added)

    def of_rows(self, rows: NDArray[np.bool_] | Ints) -> Board:
        """Return the board of some lists, (U,) of them or by their numbers."""
        statistics = None if self.statistics is None else self.statistics[rows]
        return Board(self.first[rows], self.added[:, rows], statistics)

    def combined(self, weights: Sequence[float] | Floats) -> Floats:
        """(U, H) scores under λ, one for each language model."""
        given = np.asarray(weights, np.float64)
        return np.where(self.impossible[given > 0].any(0), -np.inf, self.first + self.weighted(given))

    def weighted(self, weights: Floats) -> Floats:
        """(U, H) Σ_k w_k s_k over finite scores; element by element, so that the order of lists changes no bit."""
        total = np.zeros(self.first.shape)
        for weight, scores in zip(weights.tolist(), self.finite, strict=True):
            total += weight * scores
        return total

    def choose(self, weights: Sequence[float] | Floats) -> Ints:
        """(U,) the place of the best."""
        best: Ints = self.combined(weights).argmax(1)
        return best

    def sums(self, chosen: Ints) -> Floats:
        """(k,) statistics of what was chosen, summed over all lists."""
        total: Floats = self.of(chosen).sum(0)
        return total

    def of(self, chosen: Ints) -> Floats:
        """(U, k) statistics of what was chosen."""
        assert self.statistics is not None
        return self.statistics[np.arange(len(chosen)), chosen]

    def oracle(self, metric: Metric) -> Ints:
        """(U,) the hypothesis that is best for each list alone: for error rates, the best there can be."""
        assert self.statistics is not None
        there = np.isfinite(self.first)
        if metric.errors:
            loss = np.where(there, self.statistics[..., 0], np.inf)  # (U, H)
        else:
            each = [[metric.loss(row) for row in rows] for rows in self.statistics]
            loss = np.where(there, each, np.inf)
        best: Ints = loss.argmin(1)
        return best
