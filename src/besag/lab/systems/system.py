"""A law that is known exactly, and a family of such laws with its scores.

    System    p(x), an array with one axis a place; its marginals, conditionals and draws
    Family    p_θ(x) with s(x) = ∇_θ log p_θ(x) for every state, so that I = E[s sᵀ] is a sum, not an estimate

States are numbered as the flat index of the array: the first place is the most significant. Knows every probability;
refuses what has more than 2^16 of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Floats, Ints
from besag.checks import array, checked, whole_number
from besag.conditionals.table import Exact, Table
from besag.errors import BesagError, quoted

MOST_STATES = 2**16
CLOSE = 1e-9  # how far from one a law may sum


class System(ABC):
    """A law over sequences of N places, each with symbols of its own.

    Attributes:
        name: what it is called in tables and figures.
        shape: (V_1, …, V_N), how many symbols each place has.
    """

    name: str
    shape: tuple[int, ...]

    @property
    @abstractmethod
    def law(self) -> Floats:
        """Every probability, (V_1, …, V_N)."""

    @property
    def places(self) -> int:
        """N."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """S, how many states there are, whether or not so many can be enumerated."""
        return math.prod(self.shape)

    @cached_property
    def states(self) -> Ints:
        """(S, N) every sequence, in the order of the law."""
        refuse_large(self.shape, self.name)
        return all_states(self.shape)

    @property
    def symbols(self) -> list[str]:
        """What the symbols are called, for systems whose places share them."""
        return [f"s{symbol}" for symbol in range(max(self.shape))]

    def marginal(self, places: Iterable[int]) -> Floats:
        """The law of some places, one axis each, in ascending order."""
        kept = subset(places, self.places, "places")
        others = tuple(place for place in range(self.places) if place not in kept)
        return np.asarray(self.law.sum(others))

    def conditional(self, hidden: Iterable[int]) -> Floats:
        """p(x_K | x_−K) at every x, in the shape of the law, for any set K of hidden places.

        A context of probability zero has no conditional; it is refused, not answered.
        """
        axes = tuple(subset(hidden, self.places, "hidden"))
        context = self.law.sum(axes, keepdims=True)
        if (context == 0).any():
            where = np.argwhere(context == 0)[0]
            shown = {place: int(where[place]) for place in range(self.places) if place not in axes}
            raise BesagError(
                f"{self.name}: the context {quoted(shown)} has probability 0, so nothing can be conditioned on it; "
                "give a law without zeros, or hide more places"
            )
        return np.asarray(self.law / context)

    def draw(self, count: int, seed: int = 0) -> Ints:
        """(count, N) independent sequences."""
        whole_number(count, "count", most=10**8)
        drawn = np.random.default_rng(seed).choice(self.size, size=count, p=self.law.ravel())
        return np.stack(np.unravel_index(drawn, self.shape), 1)

    def conditionals(self) -> Exact:
        """The same law as who answers: `besag.load(system.conditionals())` has every verb."""
        return Table(self.law, self.symbols, name=self.name)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.places} places, {self.size:,} states>"


class Given(System):
    """A table of probabilities, whoever made it."""

    def __init__(self, law: Floats, name: str, symbols: Sequence[str] | None = None) -> None:
        self.name, self.shape = name, law.shape
        self._law, self._symbols = law, symbols

    @property
    def law(self) -> Floats:
        return self._law

    @property
    def symbols(self) -> list[str]:
        return super().symbols if self._symbols is None else list(self._symbols)


class Family(System):
    """A law p_θ among its like.

    Attributes:
        theta: (d,) the parameters.
        parameters: what each of them is called.
    """

    theta: Floats
    parameters: tuple[str, ...]

    @cached_property
    def law(self) -> Floats:
        """Every probability, (V_1, …, V_N)."""
        refuse_large(self.shape, self.name)
        log_weights = self._log_weights()
        weights = np.exp(log_weights - log_weights.max())
        law: Floats = (weights / weights.sum()).reshape(self.shape)
        law.setflags(write=False)
        return law

    @abstractmethod
    def _log_weights(self) -> Floats:
        """(S,) log p(x) up to a constant, state by state."""

    @abstractmethod
    def _at(self, theta: Floats) -> Self: ...

    def at(self, theta: ArrayLike) -> Self:
        """The same family at other parameters."""
        moved = array(theta, "theta")
        if moved.shape != self.theta.shape or not np.isfinite(moved).all():
            raise BesagError(f"theta={quoted(theta)}: {self.name} has {len(self.theta)} finite parameters")
        return self._at(moved)

    @cached_property
    @abstractmethod
    def scores(self) -> Floats:
        """(S, d) ∇_θ log p_θ(x) of every state."""

    @cached_property
    def information(self) -> Floats:
        """(d, d) Fisher's information of one whole sequence, E[s sᵀ]."""
        return np.asarray(self.scores.T @ (self.law.reshape(-1, 1) * self.scores))


class Exponential(Family):
    """p_θ(x) ∝ exp(b(x) + θ · T(x)), any finite exponential family: s(x) = T(x) − E T.

    Args:
        statistics: T, of shape (V_1, …, V_N, d).
        theta: (d,); zeros, if left out.
        base: b, of shape (V_1, …, V_N); zero, if left out.
        name: what it is called.
    """

    @checked
    def __init__(
        self,
        statistics: ArrayLike,
        theta: ArrayLike | None = None,
        base: ArrayLike | None = None,
        name: str = "exponential family",
    ) -> None:
        given = array(statistics, "statistics")
        if given.ndim < 2 or not given.size:
            raise BesagError(f"statistics need an axis a place and one of parameters; got the shape {given.shape}")
        self.name, self.shape = name, given.shape[:-1]
        self.statistics = given.reshape(-1, given.shape[-1])  # (S, d)
        self.theta = np.zeros(given.shape[-1]) if theta is None else array(theta, "theta")
        self.base = np.zeros(self.shape) if base is None else array(base, "base")
        self.parameters = tuple(f"θ{number}" for number in range(given.shape[-1]))
        if self.theta.shape != (given.shape[-1],) or self.base.shape != self.shape:
            raise BesagError(
                f"statistics of the shape {given.shape} go with {given.shape[-1]} parameters and a base of the shape "
                f"{self.shape}; got {self.theta.shape} and {self.base.shape}"
            )
        if not all(np.isfinite(part).all() for part in (given, self.theta, self.base)):
            raise BesagError("statistics, theta and base must be finite")

    def _log_weights(self) -> Floats:
        return np.asarray(self.base.ravel() + self.statistics @ self.theta)

    def _at(self, theta: Floats) -> Self:
        return type(self)(self.statistics.reshape(*self.shape, -1), theta, self.base, self.name)

    @cached_property
    def scores(self) -> Floats:
        return np.asarray(self.statistics - self.law.ravel() @ self.statistics)


@checked
def table(law: ArrayLike, name: str = "table", symbols: Sequence[str] | None = None) -> System:
    """A system of your own: every probability, one axis a place.

    Args:
        law: (V_1, …, V_N), non-negative and summing to one.
        name: what it is called.
        symbols: what the symbols are called.

    Returns:
        The system.

    Examples:
        >>> from besag.lab import table
        >>> table([[0.4, 0.1], [0.1, 0.4]]).conditional([0])
        array([[0.8, 0.2],
               [0.2, 0.8]])
    """
    return Given(law_of(law), name, symbols)


def law_of(law: object, positive: bool = False) -> Floats:
    """The law of a system, or an array held to be one; `positive` where no state may be impossible."""
    given = law.law if isinstance(law, System) else array(law, "law")
    if not given.ndim or not given.size:
        raise BesagError(f"law={quoted(law)}: a law has one axis a place")
    refuse_large(given.shape, "the law")
    if not (given >= 0).all():  # nan is not, either
        raise BesagError("a law has no negative probabilities, and no missing ones")
    if not abs(total := float(given.sum()) - 1) <= CLOSE:
        raise BesagError(f"the law sums to {total + 1:.12g} and not to 1: divide it by its sum")
    if positive and (given == 0).any():
        zeros = int((given == 0).sum())
        raise BesagError(
            f"{zeros:,} of {given.size:,} states have probability 0, the first of them "
            f"{quoted(tuple(np.argwhere(given == 0)[0].tolist()))}: this needs a law without zeros"
        )
    return given


def refuse_large(shape: Sequence[int], name: str) -> None:
    """Say which size would do, where there are more states than are enumerated."""
    size = math.prod(shape)
    if size > MOST_STATES:
        width = max(shape)
        most = int(math.log(MOST_STATES) / math.log(width) + 1e-9)
        raise BesagError(
            f"{name} has {size:,} states, and at most {MOST_STATES:,} are enumerated: "
            + (f"{most} places of {width} symbols are the largest that work" if most else f"{width} symbols are many")
        )


def all_states(shape: Sequence[int]) -> Ints:
    """(S, N) every sequence, the last place changing fastest."""
    return np.stack(np.unravel_index(np.arange(math.prod(shape)), tuple(shape)), 1).astype(np.int64)


def subset(places: Iterable[int], count: int, name: str) -> list[int]:
    """Distinct places from 0 to count − 1, ascending."""
    try:
        listed: list[Any] = list(places)
    except TypeError:
        raise BesagError(f"{name}={quoted(places)}: give a list of places from 0 to {count - 1}") from None
    numbers = sorted(whole_number(place, name, least=0, most=count - 1) for place in listed)
    if len(set(numbers)) != len(numbers):
        raise BesagError(f"{name}={quoted(listed)}: a place is named twice")
    return numbers
