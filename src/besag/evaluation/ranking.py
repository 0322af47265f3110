"""How well scores rank what was measured, best first: NDCG and recall at the top, as ProteinGym defines them.

    gains  g_i = (y_i − min y) / (max y − min y)              k = ⌊n / 10⌋
    NDCG   = Σ_{r ≤ k} g_(r) / log₂(r + 1)  ÷  the same with the k largest gains, r: the rank by score
    recall = |top of y ∩ top of score| / |top of y|           top: strictly above the 90th percentile

Where scores are equal, the gains of their ranks are averaged (ProteinGym takes them as sorting leaves them). Knows two
columns of numbers.
"""

from __future__ import annotations

import math

import numpy as np

from besag.arrays import Floats

TOP = 10  # per cent


def ndcg(measured: Floats, scores: Floats) -> float:
    """nan where fewer than ten were measured, or all alike: then there is no top."""
    k, spread = len(measured) * TOP // 100, float(np.ptp(measured))
    if k < 1 or spread == 0:
        return math.nan
    gains = (measured - measured.min()) / spread
    discount = 1 / np.log2(np.arange(2, k + 2))
    _, which, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    shared = np.bincount(which, gains) / counts  # of equal scores, the mean
    ranked = np.repeat(shared, counts)[:k]
    return float(ranked @ discount / (np.sort(gains)[::-1][:k] @ discount))


def top_recall(measured: Floats, scores: Floats) -> float:
    """nan where nothing lies above the percentile, as where all were measured alike."""
    best, found = (values > np.percentile(values, 100 - TOP) for values in (measured, scores))
    return float((best & found).sum() / best.sum()) if best.any() else math.nan
