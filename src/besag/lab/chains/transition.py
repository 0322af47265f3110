"""A Markov chain on the states of a law, known exactly: by what a step does to every function of the state.

    (P f)(x) = E[f(X_1) | X_0 = x]        a law moves the other way: (μ P)(y) = Σ_x μ(x) P(x, y)

For a chain in detailed balance with π the second follows from the first, μ P = π · P(μ/π), so that nothing of the size
S × S is ever made. States are numbered as the flat index of the law. Knows arrays, and not how a kernel draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import array
from besag.errors import BesagError, quoted, require

MOST_DENSE = 2**12  # states of a matrix that is written down: 128 MiB
CLOSE = 1e-9


class Transition(ABC):
    """One step of a chain.

    Attributes:
        name: what it is called in tables and figures.
        aim: (V_1, …, V_N) the law whose conditionals the steps are made of.
        passes: forward passes of a masked model that one step costs.
        reversible: is detailed balance met, by construction?
    """

    name: str
    aim: Floats
    passes: float
    reversible: bool

    @property
    def size(self) -> int:
        """S, how many states there are."""
        return self.aim.size

    @cached_property
    @abstractmethod
    def law(self) -> Floats:
        """(S,) the law that a step leaves as it is."""

    @abstractmethod
    def forward(self, f: Floats) -> Floats:
        """P f, for a function (S,) or several of them (S, m)."""

    @cached_property
    def matrix(self) -> Floats:
        """(S, S) P itself, rows summing to one."""
        refuse_dense(self.size, self.name)
        return np.asarray(self.forward(np.eye(self.size)))

    def push(self, law: Floats) -> Floats:
        """μ P, for a law (S,) or several (S, m)."""
        if self.reversible:
            pi = self.law.reshape(-1, *[1] * (law.ndim - 1))
            return np.asarray(pi * self.forward(law / pi))
        return np.asarray(self.matrix.T @ law)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.size:,} states>"


class Dense(Transition):
    """A matrix that is given; its law is found where it is not given too."""

    def __init__(
        self, matrix: Floats, aim: Floats, name: str, passes: float = 1.0, law: Floats | None = None,
        reversible: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.aim, self.passes, self.reversible = name, aim, passes, reversible
        self.matrix = stochastic(matrix, name)
        self._law = law

    @property
    def size(self) -> int:
        return len(self.matrix)

    @cached_property
    def law(self) -> Floats:
        return stationary(self.matrix, self.name) if self._law is None else np.ravel(self._law)

    def forward(self, f: Floats) -> Floats:
        return np.asarray(self.matrix @ f)


class Product(Transition):
    """Several steps after one another, as one."""

    def __init__(self, parts: list[Transition], name: str) -> None:
        self.parts, self.name, self.aim = parts, name, parts[0].aim
        self.passes, self.reversible = sum(part.passes for part in parts), False

    @cached_property
    def law(self) -> Floats:
        return self.parts[0].law  # parts that share a law keep it together

    def forward(self, f: Floats) -> Floats:
        for part in reversed(self.parts):  # the first step is the outermost expectation
            f = part.forward(f)
        return f

    def push(self, law: Floats) -> Floats:
        for part in self.parts:
            law = part.push(law)
        return law


def numbered(states: object, size: int, name: str) -> Ints:
    """(n,) numbers of states, one at least."""
    found = np.atleast_1d(array(states, name))
    if found.ndim != 1 or not found.size or not np.isin(found, np.arange(size)).all():
        raise BesagError(f"{name}={quoted(states)}: give numbers of states, from 0 to {size - 1:,}")
    return found.astype(np.int64)


def refuse_dense(size: int, name: str) -> None:
    if size > MOST_DENSE:
        raise BesagError(
            f"{name} has {size:,} states, and a matrix of them is written down up to {MOST_DENSE:,}: 12 places of two "
            "symbols, 7 of three. `spectrum` of single sites and blocks asks for none"
        )


def stochastic(matrix: Floats, name: str) -> Floats:
    """The matrix, held to have laws as rows."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise BesagError(f"{name}: a transition matrix is square, one row a state; got the shape {matrix.shape}")
    refuse_dense(len(matrix), name)
    if not (matrix >= -CLOSE).all() or not np.abs(matrix.sum(1) - 1).max() <= CLOSE:
        raise BesagError(f"{name}: the rows of a transition matrix are laws, none negative, each summing to 1")
    return np.clip(matrix, 0, None)


def refuse_reducible(matrix: Floats, name: str) -> None:
    """A chain that falls apart has several laws, and where it ends depends on where it began."""
    connected_components = require("scipy.sparse.csgraph", extra="eval").connected_components
    parts, part_of = connected_components(matrix > 0, directed=True, connection="strong")
    if parts == 1:
        return
    closed = [part for part in range(parts) if not (matrix[part_of == part][:, part_of != part] > 0).any()]
    if len(closed) > 1:
        ones = [int(np.flatnonzero(part_of == part)[0]) for part in closed[:2]]
        raise BesagError(
            f"{name} is reducible: {len(closed)} sets of states are never left, such as those of states {ones[0]} and "
            f"{ones[1]}, so it has no one law. Let every place be drawn, from a law without zeros"
        )


def stationary(matrix: Floats, name: str = "the chain") -> Floats:
    """(S,) the one law that a matrix keeps; a reducible chain is refused."""
    refuse_reducible(matrix, name)
    size = len(matrix)
    system = np.vstack([matrix.T - np.eye(size), np.ones(size)])
    law = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]
    law = np.clip(law, 0, None)
    return np.asarray(law / law.sum())
