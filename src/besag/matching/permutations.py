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

TOLERANCE, MOST_STEPS = 1e-9, 1_000


def sinkhorn(energies: Floats, temperature: float) -> tuple[Floats, float]:
    """(n, n) the doubly stochastic table, and how far its rows are from summing to 1 at the end.

    A turn scales the rows by Sinkhorn's step or by Newton's, whichever brings them nearer, and then the columns. The
    first always comes nearer, and crawls where energies are sharp; there the second takes a few turns.
    """
    logits = _columns_scaled(-np.asarray(energies, np.float64) / temperature)
    for _ in range(MOST_STEPS):
        if _residual(logits) < TOLERANCE:
            break
        steps = (-np.logaddexp.reduce(logits, 1), _newton(logits))  # (n,) each, added to the rows
        logits = min((_columns_scaled(logits + step[:, None]) for step in steps), key=_residual)
    return np.exp(logits), _residual(logits)


def _columns_scaled(logits: Floats) -> Floats:
    scaled: Floats = logits - np.logaddexp.reduce(logits, 0, keepdims=True)
    return scaled


def _residual(logits: Floats) -> float:
    return float(np.abs(np.exp(logits).sum(1) - 1).max())


def _newton(logits: Floats) -> Floats:
    """(n,) what makes rows sum to 1 to first order, where columns do and go on doing so: L step = 1 − row sums.

    L = diag(row sums) − P Pᵀ is a Laplacian: its diagonal is taken from the others, which may be tiny beside 1.
    """
    soft, step = np.exp(logits), np.zeros(len(logits))
    laplacian = -(soft @ soft.T)
    np.fill_diagonal(laplacian, 0.0)
    np.fill_diagonal(laplacian, -laplacian.sum(1))
    try:  # a number common to all rows changes nothing: the first one's is 0
        step[1:] = np.linalg.solve(laplacian[1:, 1:], 1 - soft[1:].sum(1))
    except np.linalg.LinAlgError:  # rows that share no column
        return np.zeros(len(logits))
    return step if np.isfinite(step).all() else np.zeros(len(logits))


def assignment(energies: Floats) -> Ints:
    """(n,) the column of each row such that the sum of energies is least."""
    found: Ints = require("scipy.optimize", extra="eval").linear_sum_assignment(energies)[1]
    return found
