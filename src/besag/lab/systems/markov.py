"""Markov chains in time: p(x) = π(x_1) ∏_t P(x_t, x_{t+1}).

θ holds the log-odds against the last symbol: log π(b)/π(V−1), then log P(a, b)/P(a, V−1), row by row.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Floats
from besag.checks import array, checked, whole_number
from besag.errors import BesagError
from besag.lab.systems.system import CLOSE, Family


class MarkovChain(Family):
    """A homogeneous chain from a law of the first symbol. Made by `markov_chain`.

    Attributes:
        start: (V,) π.
        transition: (V, V) P, rows summing to one.
    """

    name = "Markov chain"

    def __init__(self, places: int, theta: Floats, width: int) -> None:
        self.shape, self.theta = (width,) * places, theta
        odds = np.concatenate([theta.reshape(width + 1, width - 1), np.zeros((width + 1, 1))], 1)
        weight = np.exp(odds - odds.max(1, keepdims=True))
        rows = weight / weight.sum(1, keepdims=True)
        self.start, self.transition = rows[0], rows[1:]
        whence = ["start", *map(str, range(width))]
        self.parameters = tuple(f"{one}→{other}" for one in whence for other in range(width - 1))

    def _log_weights(self) -> Floats:
        steps = np.log(self.transition)[self.states[:, :-1], self.states[:, 1:]].sum(1)
        return np.asarray(np.log(self.start)[self.states[:, 0]] + steps)

    @cached_property
    def scores(self) -> Floats:
        width = len(self.start)
        first = np.eye(width)[self.states[:, 0]] - self.start  # (S, V)
        counts = np.zeros((len(self.states), width, width))
        for time in range(self.places - 1):
            np.add.at(counts, (np.arange(len(self.states)), self.states[:, time], self.states[:, time + 1]), 1.0)
        moves = counts - counts.sum(2, keepdims=True) * self.transition  # (S, V, V)
        return np.concatenate([first[:, None], moves], 1)[:, :, :-1].reshape(len(self.states), -1)

    def _at(self, theta: Floats) -> Self:
        return type(self)(self.places, theta, len(self.start))


@checked
def markov_chain(places: int, transition: ArrayLike, start: ArrayLike | None = None) -> MarkovChain:
    """Symbols one after the other, each drawn from the row of the one before.

    Args:
        places: N, how many symbols.
        transition: (V, V) positive, rows summing to one.
        start: (V,) the law of the first symbol; uniform, if left out.

    Returns:
        The family.

    Examples:
        >>> from besag.lab import markov_chain
        >>> markov_chain(2, [[0.9, 0.1], [0.1, 0.9]]).law
        array([[0.45, 0.05],
               [0.05, 0.45]])
    """
    whole_number(places, "places", most=4096)
    rows = array(transition, "transition")
    width = len(rows) if rows.ndim else 0
    if width < 2 or rows.shape != (width, width):
        raise BesagError(f"transition has the shape {rows.shape}: give V × V probabilities, V at least 2")
    first = np.full(width, 1 / width) if start is None else array(start, "start")
    if first.shape != (width,):
        raise BesagError(f"start has the shape {first.shape}: give {width} probabilities")
    whole = np.vstack([first, rows])
    if not (whole > 0).all():
        raise BesagError("a Markov chain with log-odds as parameters needs every probability above 0")
    if not (np.abs(whole.sum(1) - 1) <= CLOSE).all():
        raise BesagError(f"rows of probabilities sum to {whole.sum(1).round(6).tolist()}, and not all to 1")
    odds = np.log(whole[:, :-1] / whole[:, -1:])
    return MarkovChain(places, odds.ravel(), width)
