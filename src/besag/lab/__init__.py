"""The lab: training and mixing of masked models, exactly, on systems small enough to enumerate.

A law is an array of probabilities with one axis a place: shape (V_1, …, V_N), float64, summing to one. Names load when
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from besag.lab.heads import MixtureHead, mixture_head, one_pass_step, stutter
    from besag.lab.learning.best_law import BestLaw, best_law
    from besag.lab.learning.bound import Bound, finite_sample_bound
    from besag.lab.learning.estimators import Estimates, Fit, fit, simulate
    from besag.lab.learning.information import Information, information
    from besag.lab.learning.masks import masks_of, uniform_masks
    from besag.lab.noise import NoisyConditionals, divergence, joint_of
    from besag.lab.pair_model import PairModel
    from besag.lab.systems.grammar import Grammar, grammar
    from besag.lab.systems.graphs import Graph, chain, clique, cycle, grid, star
    from besag.lab.systems.markov import MarkovChain, markov_chain
    from besag.lab.systems.mixture import TwoModes, two_modes
    from besag.lab.systems.pairwise import Pairwise, ising, potts
    from besag.lab.systems.random import random_family, random_table
    from besag.lab.systems.system import Exponential, Family, System, table

_HOMES = {  # what is public, and the file that holds it
    "BestLaw": "besag.lab.learning.best_law",
    "Bound": "besag.lab.learning.bound",
    "Estimates": "besag.lab.learning.estimators",
    "Exponential": "besag.lab.systems.system",
    "Family": "besag.lab.systems.system",
    "Fit": "besag.lab.learning.estimators",
    "Grammar": "besag.lab.systems.grammar",
    "Graph": "besag.lab.systems.graphs",
    "Information": "besag.lab.learning.information",
    "MarkovChain": "besag.lab.systems.markov",
    "MixtureHead": "besag.lab.heads",
    "NoisyConditionals": "besag.lab.noise",
    "PairModel": "besag.lab.pair_model",
    "Pairwise": "besag.lab.systems.pairwise",
    "System": "besag.lab.systems.system",
    "TwoModes": "besag.lab.systems.mixture",
    "best_law": "besag.lab.learning.best_law",
    "chain": "besag.lab.systems.graphs",
    "clique": "besag.lab.systems.graphs",
    "cycle": "besag.lab.systems.graphs",
    "divergence": "besag.lab.noise",
    "finite_sample_bound": "besag.lab.learning.bound",
    "fit": "besag.lab.learning.estimators",
    "grammar": "besag.lab.systems.grammar",
    "grid": "besag.lab.systems.graphs",
    "information": "besag.lab.learning.information",
    "ising": "besag.lab.systems.pairwise",
    "joint_of": "besag.lab.noise",
    "markov_chain": "besag.lab.systems.markov",
    "masks_of": "besag.lab.learning.masks",
    "mixture_head": "besag.lab.heads",
    "one_pass_step": "besag.lab.heads",
    "potts": "besag.lab.systems.pairwise",
    "random_family": "besag.lab.systems.random",
    "random_table": "besag.lab.systems.random",
    "simulate": "besag.lab.learning.estimators",
    "star": "besag.lab.systems.graphs",
    "stutter": "besag.lab.heads",
    "table": "besag.lab.systems.system",
    "two_modes": "besag.lab.systems.mixture",
    "uniform_masks": "besag.lab.learning.masks",
}

__all__ = [
    "BestLaw", "Bound", "Estimates", "Exponential", "Family", "Fit", "Grammar", "Graph", "Information",
    "MarkovChain", "MixtureHead", "NoisyConditionals", "PairModel", "Pairwise", "System", "TwoModes", "best_law",
    "chain", "clique", "cycle", "divergence", "finite_sample_bound", "fit", "grammar", "grid", "information",
    "ising", "joint_of", "markov_chain", "masks_of", "mixture_head", "one_pass_step", "potts",
    "random_family", "random_table", "simulate", "star", "stutter", "table", "two_modes", "uniform_masks",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'besag.lab' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
