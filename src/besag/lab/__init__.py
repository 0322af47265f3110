"""The lab: training and mixing of masked models, exactly, on systems small enough to enumerate.

A law is an array of probabilities with one axis a place: shape (V_1, …, V_N), float64, summing to one. Names load when
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from besag.lab.systems.grammar import Grammar, grammar
    from besag.lab.systems.graphs import Graph, chain, clique, cycle, grid, star
    from besag.lab.systems.markov import MarkovChain, markov_chain
    from besag.lab.systems.mixture import TwoModes, two_modes
    from besag.lab.systems.pairwise import Pairwise, ising, potts
    from besag.lab.systems.random import random_family, random_table
    from besag.lab.systems.system import Exponential, Family, System, table

_HOMES = {  # what is public, and the file that holds it
    "Exponential": "besag.lab.systems.system",
    "Family": "besag.lab.systems.system",
    "Grammar": "besag.lab.systems.grammar",
    "Graph": "besag.lab.systems.graphs",
    "MarkovChain": "besag.lab.systems.markov",
    "Pairwise": "besag.lab.systems.pairwise",
    "System": "besag.lab.systems.system",
    "TwoModes": "besag.lab.systems.mixture",
    "chain": "besag.lab.systems.graphs",
    "clique": "besag.lab.systems.graphs",
    "cycle": "besag.lab.systems.graphs",
    "grammar": "besag.lab.systems.grammar",
    "grid": "besag.lab.systems.graphs",
    "ising": "besag.lab.systems.pairwise",
    "markov_chain": "besag.lab.systems.markov",
    "potts": "besag.lab.systems.pairwise",
    "random_family": "besag.lab.systems.random",
    "random_table": "besag.lab.systems.random",
    "star": "besag.lab.systems.graphs",
    "table": "besag.lab.systems.system",
    "two_modes": "besag.lab.systems.mixture",
}

__all__ = [
    "Exponential", "Family", "Grammar", "Graph", "MarkovChain", "Pairwise", "System", "TwoModes", "chain", "clique",
    "cycle", "grammar", "grid", "ising", "markov_chain", "potts", "random_family", "random_table", "star", "table",
    "two_modes",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'besag.lab' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
