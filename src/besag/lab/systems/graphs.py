"""Who is coupled to whom: a line, a ring, a grid, a star, all with all, or any edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from besag.checks import checked, whole_number
from besag.errors import BesagError, quoted

MOST_PLACES = 4096


@dataclass(frozen=True)
class Graph:
    """Places 0 … N−1 and the edges between them.

    Attributes:
        places: N.
        edges: pairs of places, each once.
        name: what it is called in tables and figures.
    """

    places: int
    edges: tuple[tuple[int, int], ...]
    name: str = "graph"

    def __post_init__(self) -> None:
        whole_number(self.places, "places", most=MOST_PLACES)
        object.__setattr__(self, "edges", tuple(_edge(edge, self.places) for edge in self.edges))
        if len(set(self.edges)) != len(self.edges):
            raise BesagError(f"edges={quoted(self.edges)}: an edge is named twice")


def _edge(edge: Iterable[int], places: int) -> tuple[int, int]:
    try:
        one, other = sorted(whole_number(end, "edges", least=0, most=places - 1) for end in edge)
    except (TypeError, ValueError) as wrong:
        raise (
            wrong
            if isinstance(wrong, BesagError)
            else BesagError(f"edges hold {quoted(edge)}: an edge is a pair of places")
        ) from None
    if one == other:
        raise BesagError(f"edges hold {quoted(edge)}: a place is not coupled to itself")
    return one, other


@checked
def chain(places: int) -> Graph:
    """Neighbours on a line.

    Args:
        places: how many.

    Returns:
        The graph.

    Examples:
        >>> from besag.lab import chain
        >>> chain(4).edges
        ((0, 1), (1, 2), (2, 3))
    """
    count = whole_number(places, "places", most=MOST_PLACES)
    return Graph(count, tuple((place, place + 1) for place in range(count - 1)), "chain")


@checked
def cycle(places: int) -> Graph:
    """Neighbours on a ring.

    Args:
        places: how many, at least three.

    Returns:
        The graph.

    Examples:
        >>> from besag.lab import cycle
        >>> cycle(3).edges
        ((0, 1), (1, 2), (0, 2))
    """
    count = whole_number(places, "places", least=3, most=MOST_PLACES)
    return Graph(count, (*chain(count).edges, (0, count - 1)), "cycle")


@checked
def grid(rows: int, columns: int) -> Graph:
    """Neighbours above, below and beside one another; place = row · columns + column.

    Args:
        rows: how many.
        columns: how many.

    Returns:
        The graph.

    Examples:
        >>> from besag.lab import grid
        >>> grid(2, 2).edges
        ((0, 1), (2, 3), (0, 2), (1, 3))
    """
    down = whole_number(rows, "rows", most=MOST_PLACES)
    across = whole_number(columns, "columns", most=MOST_PLACES)
    beside = [(row * across + column, row * across + column + 1) for row in range(down) for column in range(across - 1)]
    below = [(place, place + across) for place in range((down - 1) * across)]
    return Graph(down * across, (*beside, *below), "grid")


@checked
def clique(places: int) -> Graph:
    """Every place with every other.

    Args:
        places: how many.

    Returns:
        The graph.

    Examples:
        >>> from besag.lab import clique
        >>> clique(3).edges
        ((0, 1), (0, 2), (1, 2))
    """
    return Graph(whole_number(places, "places", most=MOST_PLACES), tuple(combinations(range(places), 2)), "clique")


@checked
def star(places: int) -> Graph:
    """Place 0 with every other.

    Args:
        places: how many, the centre counted.

    Returns:
        The graph.

    Examples:
        >>> from besag.lab import star
        >>> star(4).edges
        ((0, 1), (0, 2), (0, 3))
    """
    count = whole_number(places, "places", most=MOST_PLACES)
    return Graph(count, tuple((0, leaf) for leaf in range(1, count)), "star")
