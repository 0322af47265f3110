"""Ising and Potts on any graph: p(x) ∝ exp(Σ_{ij ∈ E} J_ij a(x_i, x_j) + Σ_i h_i · f(x_i)).

    Ising    symbols −, +;      a(x, y) = x y,        f(x) = x
    Potts    symbols 0 … V−1;   a(x, y) = 1[x = y],   f(x) = (1[x = 1], …, 1[x = V−1])

θ is what one says it is: the couplings, the fields, both, or one coupling that all edges share. `local` answers for
one place from its neighbours alone, `block` for several, at any size: what is enumerated are fillings of the block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import Floats, Ints
from besag.checks import array, checked, whole_number
from besag.conditionals.ising import Ising
from besag.conditionals.table import Exact
from besag.errors import BesagError, quoted
from besag.lab.systems.graphs import Graph
from besag.lab.systems.system import Family, all_states, refuse_large, subset

Parameters = Literal["couplings", "fields", "both", "coupling"]
SPINS = np.array([[1.0, -1.0], [-1.0, 1.0]])


class Pairwise(Family):
    """A law of neighbours. Made by `ising` and `potts`.

    Attributes:
        graph: who is coupled to whom.
        couplings: (E,) J, one an edge.
        fields: (N, F) h, one a place for spins, V − 1 a place for Potts.
        agreement: (V, V) a.
        features: (V, F) f.
    """

    def __init__(
        self,
        graph: Graph,
        couplings: Floats,
        fields: Floats,
        agreement: Floats,
        features: Floats,
        chosen: Parameters,
        name: str,
    ) -> None:
        self.graph, self.couplings, self.fields = graph, couplings, fields
        self.agreement, self.features, self.chosen, self.name = agreement, features, chosen, name
        self.shape = (len(agreement),) * graph.places
        edges = [f"J{one},{other}" for one, other in graph.edges]
        places = [f"h{place}" + (f",{column + 1}" if features.shape[1] > 1 else "")
                  for place in range(graph.places) for column in range(features.shape[1])]  # fmt: skip
        parts = {
            "couplings": (edges, couplings),
            "fields": (places, fields.ravel()),
            "coupling": (["J"], couplings[:1]),
        }
        used = [parts[part] for part in (("couplings", "fields") if chosen == "both" else (chosen,))]
        self.parameters = tuple(label for labels, _ in used for label in labels)
        self.theta = np.concatenate([values for _, values in used])

    @property
    def symbols(self) -> list[str]:
        return ["-", "+"] if self.agreement is SPINS else super().symbols

    @cached_property
    def _statistics(self) -> tuple[Floats, Floats]:
        """(S, E) a(x_i, x_j) of every edge, (S, N F) f(x_i) of every place."""
        ends = np.array(self.graph.edges, dtype=np.int64).reshape(-1, 2)
        pairs = self.agreement[self.states[:, ends[:, 0]], self.states[:, ends[:, 1]]]
        return pairs, self.features[self.states].reshape(len(self.states), -1)

    def _log_weights(self) -> Floats:
        pairs, alone = self._statistics
        return np.asarray(pairs @ self.couplings + alone @ self.fields.ravel())

    @cached_property
    def scores(self) -> Floats:
        pairs, alone = self._statistics
        kinds = {"couplings": [pairs], "fields": [alone], "both": [pairs, alone], "coupling": [pairs.sum(1)[:, None]]}
        statistics = np.concatenate(kinds[self.chosen], 1)
        return np.asarray(statistics - self.law.ravel() @ statistics)

    def _at(self, theta: Floats) -> Self:
        edges = len(self.couplings)
        couplings, fields = self.couplings, self.fields
        if self.chosen in ("couplings", "both"):
            couplings = theta[:edges]
        elif self.chosen == "coupling":
            couplings = np.full(edges, theta[0])
        if self.chosen in ("fields", "both"):
            fields = theta[len(theta) - fields.size :].reshape(fields.shape)
        moved = type(self)(self.graph, couplings, fields, self.agreement, self.features, self.chosen, self.name)
        if "_statistics" in self.__dict__:  # they do not hang on θ, and a fit moves often
            moved.__dict__["_statistics"], moved.__dict__["states"] = self._statistics, self.states
        return moved

    @cached_property
    def _neighbours(self) -> list[tuple[Ints, Floats]]:
        """Of each place, who is coupled to it and how strongly."""
        found: list[list[tuple[int, float]]] = [[] for _ in range(self.places)]
        for (one, other), coupling in zip(self.graph.edges, self.couplings, strict=True):
            found[one].append((other, coupling))
            found[other].append((one, coupling))
        return [(np.array([place for place, _ in near], dtype=np.int64), np.array([size for _, size in near]))
                for near in found]  # fmt: skip

    def local(self, states: ArrayLike, place: int) -> Floats:
        """p(x_i | x_−i) of every symbol at one place, for sequences (C, N): (C, V). Works at any size."""
        given = np.atleast_2d(np.asarray(states, dtype=np.int64))
        return _normalised(self._felt(given, whole_number(place, "place", least=0, most=self.places - 1), ()))

    def block(self, states: ArrayLike, hidden: Iterable[int]) -> Floats:
        """p(x_K | x_−K) of every filling of K, for sequences (C, N): (C, V, …, V), an axis a hidden place, ascending.

        Works at any size: V^|K| fillings are enumerated, and what stands around the block is a field on it.
        """
        inside = subset(hidden, self.places, "hidden")
        shape = (len(self.agreement),) * len(inside)
        refuse_large(shape, f"a block of {len(inside)} places")
        fillings = all_states(shape)  # (B, k)
        given = np.atleast_2d(np.asarray(states, dtype=np.int64))
        energy = np.zeros((len(given), len(fillings)))
        for at, place in enumerate(inside):
            energy += self._felt(given, place, inside)[:, fillings[:, at]]
        for (one, other), coupling in zip(self.graph.edges, self.couplings, strict=True):
            if one in inside and other in inside:
                first, second = (fillings[:, inside.index(end)] for end in (one, other))
                energy += coupling * self.agreement[first, second]
        return _normalised(energy).reshape(len(given), *shape)

    def _felt(self, given: Ints, place: int, hidden: Sequence[int]) -> Floats:
        """(C, V) what its field and those neighbours that are not hidden add to the log-weight of each symbol there."""
        near, coupling = self._neighbours[place]
        shown = ~np.isin(near, hidden)
        around = np.einsum("cnv,n->cv", self.agreement[given[:, near[shown]]], coupling[shown])
        return np.asarray(self.features @ self.fields[place] + around)

    def conditionals(self) -> Exact:
        if self.agreement is not SPINS:
            return super().conditionals()
        matrix = np.zeros((self.places, self.places))  # besag's own spins sum over what is hidden: any size
        for (one, other), coupling in zip(self.graph.edges, self.couplings, strict=True):
            matrix[one, other] = matrix[other, one] = coupling
        return Ising(matrix, self.fields[:, 0])


@checked
def ising(
    graph: Graph,
    coupling: float | Sequence[float] = 1.0,
    field: float | Sequence[float] = 0.0,
    parameters: Parameters = "couplings",
) -> Pairwise:
    """Spins on a graph, p(x) ∝ exp(Σ_{ij} J_ij x_i x_j + Σ_i h_i x_i), x_i = ±1.

    Args:
        graph: who is coupled to whom: `chain(4)`, `grid(3, 3)`, …
        coupling: J, one for all edges or one each.
        field: h, one for all places or one each.
        parameters: what θ is: the couplings, the fields, both, or one "coupling" that all edges share.

    Returns:
        The family.

    Examples:
        >>> from besag.lab import chain, ising
        >>> ising(chain(2), 0.5).law.round(3)
        array([[0.366, 0.134],
               [0.134, 0.366]])
    """
    return _pairwise(graph, coupling, np.reshape(_spread(field, graph.places, "field"), (-1, 1)), SPINS,
                     np.array([[-1.0], [1.0]]), parameters, f"Ising {graph.name}")  # fmt: skip


@checked
def potts(
    graph: Graph,
    width: int = 3,
    coupling: float | Sequence[float] = 1.0,
    field: ArrayLike | None = None,
    parameters: Parameters = "couplings",
) -> Pairwise:
    """Symbols that like to agree, p(x) ∝ exp(Σ_{ij} J_ij 1[x_i = x_j] + Σ_i h_i(x_i)).

    Args:
        graph: who is coupled to whom.
        width: V, how many symbols.
        coupling: J, one for all edges or one each.
        field: (N, V − 1) h_i(1) … h_i(V − 1), where h_i(0) = 0; none, if left out.
        parameters: what θ is: the couplings, the fields, both, or one "coupling" that all edges share.

    Returns:
        The family.

    Examples:
        >>> from besag.lab import chain, potts
        >>> potts(chain(2), 3, 1.0).local([[2, 0]], 0).round(3)
        array([[0.576, 0.212, 0.212]])
    """
    whole_number(width, "width", least=2, most=1024)
    fields = np.zeros((graph.places, width - 1)) if field is None else array(field, "field")
    if fields.shape != (graph.places, width - 1):
        raise BesagError(f"field has the shape {fields.shape}: give {graph.places} × {width - 1} numbers")
    return _pairwise(graph, coupling, fields, np.eye(width), np.eye(width)[:, 1:], parameters, f"Potts {graph.name}")


def _pairwise(
    graph: Graph,
    coupling: float | Sequence[float],
    fields: Floats,
    agreement: Floats,
    features: Floats,
    chosen: Parameters,
    name: str,
) -> Pairwise:
    couplings = _spread(coupling, len(graph.edges), "coupling")
    if not np.isfinite(couplings).all() or not np.isfinite(fields).all():
        raise BesagError("couplings and fields must be finite")
    if chosen != "fields" and not len(couplings):
        raise BesagError(f"a {graph.name} of {graph.places} has no couplings: let the parameters be its fields")
    if chosen == "coupling" and len(set(couplings.tolist())) > 1:
        raise BesagError(f"coupling={quoted(coupling)}: all edges share one, if that is the parameter")
    return Pairwise(graph, couplings, fields, agreement, features, chosen, name)


def _normalised(energy: Floats) -> Floats:
    """(C, B) probabilities, row by row."""
    weight = np.exp(energy - energy.max(1, keepdims=True))
    return np.asarray(weight / weight.sum(1, keepdims=True))


def _spread(given: object, count: int, name: str) -> Floats:
    """One number for all, or one each."""
    values = array(given, name)
    if values.ndim and values.shape != (count,):
        raise BesagError(f"{name}={quoted(given)}: give one number, or {count}")
    return np.broadcast_to(values, (count,)).copy()
