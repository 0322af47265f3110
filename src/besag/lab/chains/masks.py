"""Laws of masks on a small system: which set of places is hidden, with what probability.

A law of masks is a dict from sets K, as ascending tuples, to p(K), a number; or, where it looks at the state, to an
array p(K | x) in the shape of the law. The same dict weighs a loss (`learning/`) and drives a sampler (`kernels.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np

from besag.arrays import Floats
from besag.checks import whole_number
from besag.errors import BesagError, quoted
from besag.lab.systems.system import subset

Masks: TypeAlias = Mapping[tuple[int, ...], float | Floats]

MOST_MASKS = 2**14  # sets of one law
CLOSE = 1e-9


def uniform_masks(places: int, size: int) -> dict[tuple[int, ...], float]:
    """Every set of `size` places alike.

    Args:
        places: N.
        size: k, how many are hidden.

    Returns:
        Each set with 1 / C(N, k).

    Examples:
        >>> from besag.lab.chains import uniform_masks
        >>> uniform_masks(3, 2) == {(0, 1): 1 / 3, (0, 2): 1 / 3, (1, 2): 1 / 3}
        True
    """
    whole_number(places, "places")
    whole_number(size, "size", most=places)
    if (count := comb(places, size)) > MOST_MASKS:
        fits = max(one for one in range(places + 1) if comb(places, one) <= MOST_MASKS and one < size)
        raise BesagError(f"{count:,} sets of {size} of {places} places are too many: at most size={fits} works")
    return dict.fromkeys(combinations(range(places), size), 1 / count)


def checked_masks(masks: Masks, shape: tuple[int, ...]) -> dict[tuple[int, ...], float | Floats]:
    """The same with every set in order and every weight a number or an array (V_1, …, V_N); refused where no law."""
    if not masks:
        raise BesagError("a law of masks needs at least one set of places")
    found: dict[tuple[int, ...], float | Floats] = {}
    for places, weight in masks.items():
        key = tuple(subset(places, len(shape), "masks"))
        if not key or key in found:
            raise BesagError(f"masks hold {quoted(places)}: every set has a place at least, and stands there once")
        value = np.asarray(weight, np.float64)
        if value.shape not in ((), shape) or not np.isfinite(value).all() or (value < 0).any():
            raise BesagError(f"masks[{quoted(places)}]: give a probability, or one for each state, of shape {shape}")
        found[key] = float(value) if value.shape == () else value
    total = sum(np.broadcast_to(weight, shape) for weight in found.values())
    if np.abs(total - 1).max() > CLOSE:
        off = float(np.ravel(total)[np.abs(total - 1).argmax()])
        raise BesagError(f"the probabilities of masks sum to {off:.10g}, not to 1")
    unseen = sorted(set(range(len(shape))) - {place for key, w in found.items() if np.any(w) for place in key})
    if unseen:
        raise BesagError(f"places {unseen} are in no mask, so the chain is reducible: what stands there never moves")
    return found
