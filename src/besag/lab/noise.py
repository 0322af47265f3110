"""Conditionals of a known joint with noise on their logarithms, and what constructions of joints make of them.

    logits    log c̃_i(x) = log p(x_i | x_−i) + σ·ε_i(x) − log Σ_{x_i},    ε standard normal, one for every cell
    counts    c̃_i(x) = (n_i(x) + ½) / (n + V_i/2),    n_i(·|x_−i) multinomial, n = V_i/σ² draws in every context

A network that learned p imperfectly, in one number, and in two ways: an error of logits is the same factor whatever it
falls on, one of counts is large where tokens are rare; a token of probability 1/V is off by σ in both. The answers with
several places hidden, which the chain rule begins with, get noise of the same size. The constructions are those of
`joints/`, run on these tables; of three places and more they are `ag`, `loglinear`, the law of random-scan Gibbs
sampling, the chain rule averaged over all orders, and the product of the conditionals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike

from besag.arrays import Floats
from besag.checks import checked, number, whole_number
from besag.errors import BesagError
from besag.joints.block_ag import Mixture
from besag.joints.block_loglinear import Effects
from besag.joints.registry import construction
from besag.joints.unaries import Unaries
from besag.lab.systems.system import law_of

Error: TypeAlias = Literal["logits", "counts"]

MOST_NOISE = 20.0
MOST_ORDERED = 6  # places of which all orders are averaged: 720
STEPS, STILL = 20_000, 1e-13  # of power iteration, and the change that ends it


class NoisyConditionals:
    """What a model would answer that knows p but for noise: every answer is drawn once, and stays.

    Args:
        law: p, (V_1, …, V_N), without zeros.
        noise: σ.
        seed: of the noise; a law that `random_table` drew from the same seed is independent of it.
        error: "logits" or "counts", as above.

    Examples:
        >>> from besag.lab import NoisyConditionals
        >>> made = NoisyConditionals([[0.4, 0.1], [0.1, 0.4]], noise=0.0)
        >>> [np.exp(log_c).round(2).tolist() for log_c in made.each()]  # p(x|y), p(y|x)
        [[[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.2, 0.8]]]
    """

    @checked
    def __init__(self, law: ArrayLike, noise: float, seed: int = 0, error: Error = "logits") -> None:
        self.law = law_of(law, positive=True)
        if self.law.ndim < 2:
            raise BesagError("a joint is of two places or more, and this law has one")
        self.noise = number(noise, "noise", least=0, most=MOST_NOISE)
        self.error = error
        own = np.random.SeedSequence(whole_number(seed, "seed", least=0), spawn_key=(1,))  # not that of `random_table`
        self.generator = np.random.default_rng(own)
        self.answers: dict[tuple[int, frozenset[int]], Floats] = {}
        for place in range(self.places):  # drawn first, so that they are the same whoever asks what
            self.given(place, set(range(self.places)) - {place})

    @property
    def places(self) -> int:
        return self.law.ndim

    def given(self, place: int, shown: set[int]) -> Floats:
        """log c̃ of a place given those that are shown; axes of length 1 where a place is summed out."""
        key = place, frozenset(shown)
        if key not in self.answers:
            others = tuple(axis for axis in range(self.places) if axis != place and axis not in shown)
            logits = self._spoilt(self.law.sum(others, keepdims=True), place)
            self.answers[key] = logits - np.logaddexp.reduce(logits, place, keepdims=True)
        return self.answers[key]

    def _spoilt(self, weights: Floats, place: int) -> Floats:
        """Logits of the conditional along an axis, in the shape of the weights."""
        if not self.noise or self.error == "logits":
            return np.asarray(np.log(weights) + self.noise * self.generator.normal(size=weights.shape))
        chances = np.moveaxis(weights / weights.sum(place, keepdims=True), place, -1)
        draws = max(1, round(weights.shape[place] / self.noise**2))
        return np.asarray(np.log(np.moveaxis(self.generator.multinomial(draws, chances), -1, place) + 0.5))

    def each(self) -> list[Floats]:
        """log c̃_i of every place given all others."""
        return [self.given(place, set(range(self.places)) - {place}) for place in range(self.places)]

    def pair(self) -> Unaries:
        """Of two places: what a construction of `joints/` looks at."""
        if self.places != 2:
            raise BesagError(f"a pair has two places, and this law has {self.places}")
        a, b = (torch.from_numpy(np.exp(log_c)) for log_c in self.each())
        hidden = (torch.from_numpy(np.exp(self.given(place, set()).ravel())) for place in (0, 1))
        return Unaries.of(a, b, *hidden)


@checked
def joint_of(conditionals: NoisyConditionals, method: str) -> Floats:
    """The joint that a construction makes of noisy conditionals, in the shape of the law.

    Args:
        conditionals: of two places or more.
        method: for two places the name of any construction of `joints/`; for more one of BLOCKS.

    Returns:
        q, summing to one.

    Examples:
        >>> from besag.lab import NoisyConditionals, joint_of
        >>> made = NoisyConditionals([[0.4, 0.1], [0.1, 0.4]], noise=0.0)
        >>> [joint_of(made, name).round(2).tolist() for name in ("loglinear", "mrf_local")]  # it, and its square
        [[[0.4, 0.1], [0.1, 0.4]], [[0.47, 0.03], [0.03, 0.47]]]
    """
    if conditionals.places == 2:
        pair = conditionals.pair()
        options = {"limit": 20_000} if method in ("ag", "stationary") else {}
        return np.asarray(construction(method, **options).build(pair).law.cells(pair).exp())
    if method not in BLOCKS:
        raise BesagError(f"{conditionals.places} places have a joint by {', '.join(BLOCKS)}, not by {method!r}")
    return BLOCKS[method](conditionals)


@checked
def divergence(law: ArrayLike, other: ArrayLike) -> float:
    """KL(p ‖ q) in nats; infinite where q lacks what p has.

    Args:
        law: p.
        other: q, of the same shape.

    Returns:
        The divergence.

    Examples:
        >>> from besag.lab import divergence
        >>> round(divergence([0.5, 0.5], [0.25, 0.75]), 3)
        0.144
    """
    p, q = np.asarray(law, np.float64), np.asarray(other, np.float64)
    if p.shape != q.shape:
        raise BesagError(f"laws of the shapes {p.shape} and {q.shape} do not compare")
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0).sum())


def divergences(
    law: Floats, noise: float, methods: Sequence[str], seeds: Sequence[int],
    error: Error = "logits",
) -> Floats:  # fmt: skip
    """(seeds, methods) KL(p ‖ q), all methods on the same noise."""
    made = (NoisyConditionals(law, noise, seed, error) for seed in seeds)
    return np.array([[divergence(law, joint_of(one, method)) for method in methods] for one in made])


# ---- three places and more


def _ag(conditionals: NoisyConditionals) -> Floats:
    return _solved(Mixture(limit=20_000), conditionals)


def _loglinear(conditionals: NoisyConditionals) -> Floats:
    return _solved(Effects(), conditionals)


def _solved(how: Mixture | Effects, conditionals: NoisyConditionals) -> Floats:
    for place, log_c in enumerate(conditionals.each()):
        how.add(place, torch.from_numpy(log_c))
    return np.asarray(how.solve().log_p.exp())


def _product(conditionals: NoisyConditionals) -> Floats:
    return _normalised(np.sum(conditionals.each(), 0))


def _stationary(conditionals: NoisyConditionals) -> Floats:
    """q = mean of c̃_i(x) q(x_−i), by power iteration."""
    tables = [np.exp(log_c) for log_c in conditionals.each()]
    q = _product(conditionals)
    for _ in range(STEPS):
        after = sum(table * q.sum(place, keepdims=True) for place, table in enumerate(tables)) / len(tables)
        moved, q = float(np.abs(after - q).sum()), after
        if moved < STILL:
            return np.asarray(q)
    raise BesagError(f"Gibbs sampling has not settled after {STEPS:,} steps: less noise or dependence would do")


def _orders(conditionals: NoisyConditionals) -> Floats:
    if conditionals.places > MOST_ORDERED:
        raise BesagError(f"all orders of {conditionals.places} places are many: at most {MOST_ORDERED} are averaged")
    every = list(permutations(range(conditionals.places)))
    laws = (np.exp(sum(_steps(conditionals, order))) for order in every)
    return np.asarray(sum(laws) / len(every))


def _steps(conditionals: NoisyConditionals, order: Sequence[int]) -> Iterator[Floats]:
    for at, place in enumerate(order):
        yield conditionals.given(place, set(order[:at]))


def _normalised(log_q: Floats) -> Floats:
    return np.asarray(np.exp(log_q - np.logaddexp.reduce(log_q, axis=None)))


BLOCKS: Mapping[str, Callable[[NoisyConditionals], Floats]] = {
    "order": _orders,
    "mrf_local": _product,
    "loglinear": _loglinear,
    "ag": _ag,
    "stationary": _stationary,
}
