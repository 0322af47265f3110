"""Permutations from a table of energies: a soft one by Sinkhorn's scaling, the best hard one by assignment.

    soft: P_ij = u_i exp(−E_ij / τ) v_j,   rows and columns sum to 1        (Sinkhorn 1964; Mena et al. 2018)
    hard: argmin over π of Σ_i E_iπ(i)

P minimises Σ_ij P_ij E_ij − τ H(P) over all doubly stochastic tables, and comes to the hard one as τ falls to 0. What
is added to a whole row or column of E changes neither. Knows numbers alone.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Floats, Ints
from besag.errors import require

TOLERANCE, MOST_STEPS = 1e-5, 20_000


def sinkhorn(energies: Floats, temperature: float) -> tuple[Floats, float]:
    """(n, n) the doubly stochastic table, and how far its rows are from summing to 1 at the end."""
    logits = -np.asarray(energies, np.float64) / temperature
    residual = np.inf
    for _ in range(MOST_STEPS):
        logits = logits - np.logaddexp.reduce(logits, 1, keepdims=True)
        logits = logits - np.logaddexp.reduce(logits, 0, keepdims=True)
        residual = float(np.abs(np.exp(logits).sum(1) - 1).max())
        if residual < TOLERANCE:
            break
    return np.exp(logits), residual


def assignment(energies: Floats) -> Ints:
    """(n,) the column of each row such that the sum of energies is least."""
    found: Ints = require("scipy.optimize", extra="eval").linear_sum_assignment(energies)[1]
    return found
