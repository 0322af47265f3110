"""Permutations from a table of energies: a soft one by Sinkhorn's scaling, the best hard one by assignment.

    soft: P_ij = u_i exp(−E_ij / τ) v_j,   rows and columns sum to 1        (Sinkhorn 1964; Mena et al. 2018)
    hard: argmin over π of Σ_i E_iπ(i)

P minimises Σ_ij P_ij E_ij − τ H(P) over all doubly stochastic tables, and comes to the hard one as τ falls to 0. What
is added to a whole row or column of E changes neither. Knows numbers alone.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Floats, Ints

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
    """(n,) the column of each row such that the sum of energies is least: shortest augmenting paths, O(n³)."""
    n = len(energies)
    row_price, column_price = np.zeros(n + 1), np.zeros(n + 1)
    row_of = np.full(n + 1, -1)  # column → its row; column n is where a path begins
    for row in range(n):
        row_of[n] = row
        least, before = np.full(n + 1, np.inf), np.full(n + 1, n)
        done = np.zeros(n + 1, bool)
        column = n
        while row_of[column] != -1:
            done[column] = True
            own = row_of[column]
            reduced = energies[own] - row_price[own] - column_price[:n]
            better = ~done[:n] & (reduced < least[:n])
            least[:n][better], before[:n][better] = reduced[better], column
            following = int(np.where(done[:n], np.inf, least[:n]).argmin())
            step = least[following]
            row_price[row_of[done]] += step
            column_price[done] -= step
            least[~done] -= step
            column = following
        while column != n:
            row_of[column], column = row_of[before[column]], before[column]
    found = np.empty(n, np.int64)
    found[row_of[:n]] = np.arange(n)
    return found
