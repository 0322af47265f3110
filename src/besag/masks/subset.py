"""The uniform law over subsets of a given size: K ~ U{K ⊆ [n] : |K| = k}."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from besag import noise


def uniform_subsets(places: int, sizes: ArrayLike, draws: ArrayLike, seed: int) -> NDArray[np.bool_]:
    """One subset a draw: the places with the `size` smallest noises. A function of (seed, draw) alone."""
    size, draw = np.broadcast_arrays(np.asarray(sizes), np.asarray(draws))  # (D,)
    heights = noise.uniform(seed, noise.Measuring.SUBSET, draw[:, None], np.arange(places))  # (D, n)
    return np.asarray(heights.argsort(1).argsort(1) < size[:, None])
