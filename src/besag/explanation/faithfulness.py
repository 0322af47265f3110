"""Is an explanation true? Hide the most important tokens first, and see whether the prediction falls.

    f(k) = p(y | the k most important tokens hidden)        r(k) = the same, a random order, mean over several
    area = ∫ (r − f) d share,        relative = area / ∫ (r − f(n)) d share

The share runs from none of the tokens to all. `relative` is 1 for an order that is at the end at once, 0 for one that
is as good as chance, below 0 for one that is worse (Madsen et al. 2024, for a single text and the probability of one
prediction). It compares explanations of a model that knows masks; of others it also measures their surprise at masks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag import noise
from besag.arrays import Floats, Ints
from besag.explanation.prediction import Prediction
from besag.noise import Measuring

MOST_STEPS = 20  # points of a curve beyond the first


class Curve(NamedTuple):
    hidden: Ints  # (s + 1,) how many tokens are hidden, from 0 to n
    probs: Floats  # (s + 1,) f
    random: Floats  # (s + 1,) r
    orders: int  # random ones
    seed: int

    @property
    def shares(self) -> Floats:
        return np.asarray(self.hidden / self.hidden[-1])

    @property
    def area(self) -> float:
        return _area(self.shares, self.random - self.probs)

    @property
    def relative(self) -> float:
        """nan where hiding everything lowers nothing: then no order can be told from another."""
        best = _area(self.shares, self.random - self.probs[-1])
        return self.area / best if best > 0 else float("nan")


def follow(
    predicted: Prediction, shown: Ints, places: Ints, targets: Ints, values: Floats, mask: int, orders: int, seed: int
) -> Curve:
    """The curve of the tokens at `places` (n,) of a text (L,), by their importance (n,)."""
    n = len(places)
    draws = noise.uniform(seed, Measuring.ORDER, np.arange(orders)[:, None], np.arange(n))
    ranked = np.concatenate([np.argsort(-values, kind="stable")[None], np.argsort(draws, 1)])  # (1 + orders, n)
    hidden = np.unique(np.linspace(0, n, min(n, MOST_STEPS) + 1).round().astype(np.int64))
    turn = np.argsort(ranked, 1)  # (1 + orders, n) when the turn of each token comes
    hides = turn[:, None, :] < hidden[:, None]  # (1 + orders, s + 1, n)
    copies = np.broadcast_to(shown, (*hides.shape[:2], len(shown))).copy()
    copies[:, :, places] = np.where(hides, mask, shown[places])
    flat = copies.reshape(-1, len(shown))
    said = predicted.ask(flat, np.repeat(targets[None], len(flat), 0))
    probs = np.exp(said.log_p).reshape(hides.shape[:2])
    return Curve(hidden, probs[0], probs[1:].mean(0), orders, seed)


def _area(x: Floats, y: Floats) -> float:
    return float(np.trapezoid(y, x))
