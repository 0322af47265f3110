"""Masks that hide a clique together mix fast: two cliques of spins, hidden by sets that know them or do not.

Leaving a mode of an m-clique by steps that turn at most k spins passes through states with j spins turned, at a cost of
2J·j(m − j): C grows like exp(B J), B the least over such paths of the largest cost on the way. Only a mask that covers
the clique goes around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.chains import blocks, spectrum
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.masks import Masks, uniform_masks
from besag.lab.pictures import curves
from besag.lab.systems.graphs import Graph, clique
from besag.lab.systems.pairwise import ising

SIDE, BETWEEN = 3, 0.1  # spins of a clique, coupling between the two
FIRST, SECOND = tuple(range(SIDE)), tuple(range(SIDE, 2 * SIDE))


@register
@dataclass(frozen=True)
class CliqueMasks(Experiment):
    name: ClassVar[str] = "clique_masks"
    title: ClassVar[str] = "masks that hide a clique together mix fast"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = "for strong coupling only masks that cover a clique leave its mode in few steps"
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    def measure(self, full: bool) -> Finding:
        couplings = np.linspace(0, 2, 17 if full else 9)
        rows = [
            {"J": float(coupling), "masks": name, "C (steps)": found.poincare, "passes a step": chain.passes,
             "C · passes": found.poincare * chain.passes}
            for coupling in couplings for name, masks in _laws(_system(float(coupling)).law).items()
            for chain in [blocks(_system(float(coupling)), masks)] for found in [spectrum(chain)]
        ]  # fmt: skip
        names = list(_laws(_system(0.0).law))
        slow = {name: np.array([row["C (steps)"] for row in rows if row["masks"] == name]) for name in names}
        barriers = [_barrier(size, places) for places in (3, 4, 5) for size in range(1, places)]
        return Finding(
            shown=(
                "Steps grow exponentially with the coupling for masks smaller than a clique or across it; masks that "
                "are the cliques keep it flat, and random sets of their size owe what they do to the few that are one."
            ),
            claims={
                "the two cliques as masks: C stays below 5 at every coupling": bool(slow["the cliques"].max() < 5),
                "one and two places at a time: C grows over 100-fold from J = 0 to J = 2": all(
                    slow[name][-1] > 100 * slow[name][0] for name in ("k = 1", "k = 2")
                ),
                "sets of three across the cliques grow over 100-fold, too": bool(
                    slow["across"][-1] > 100 * slow["across"][0]
                ),
                "choosing cliques more often when they agree: C stays below 5": bool(slow["adaptive"].max() < 5),
                "log C grows by the barrier B for each unit of J (within 5 %), 3 to 5 spins, every k": all(
                    abs(row["d log C / dJ"] / row["B"] - 1) < 0.05 for row in barriers
                ),
            },
            tables={f"two cliques of {SIDE} spins, coupling {BETWEEN} between them": rows,
                    "one clique of m spins, blocks of k < m: growth of log C beside the barrier": barriers},
            arrays={"coupling": couplings, **slow},
            figures={"masks": Drawing(
                "Steps to forget (Poincaré constant) of block Gibbs on two cliques of three spins, against the "
                "coupling within a clique, by which sets are hidden together.",
                lambda ax: curves(ax, couplings, slow, "coupling J within a clique", "C (steps)", yscale="log",
                                  legend="masks"),
                (6.4, 4.0),
            )},
            notes=(
                "k = 1, 2, 3: any set of so many places; across: sets of three with places of both cliques; adaptive: "
                "a clique is chosen four times as readily where its spins agree",
                "B: 2 a (m − a) is what it costs, in units of J, to have turned a of m spins; B is the highest cost on "
                "the way from none to all that keeps it lowest, k spins a step",
            ),
        )  # fmt: skip


def _system(coupling: float) -> Any:
    edges = [*clique(SIDE).edges, *((one + SIDE, other + SIDE) for one, other in clique(SIDE).edges), (0, SIDE)]
    inside = len(clique(SIDE).edges)
    return ising(Graph(2 * SIDE, tuple(edges), "two cliques"), [coupling] * (2 * inside) + [BETWEEN])


def _laws(law: Floats) -> dict[str, Masks]:
    """By name; the adaptive one looks at the state."""
    across = {places: 1 / 18 for places in uniform_masks(2 * SIDE, SIDE) if places not in (FIRST, SECOND)}
    agree = np.zeros((2, *law.shape))
    for side, places in enumerate((FIRST, SECOND)):
        for symbol in (0, 1):
            at = tuple(symbol if place in places else slice(None) for place in range(law.ndim))
            agree[(side, *at)] = 1
    weight = 1 + 3 * agree  # (2, …)
    share = weight / weight.sum(0)
    return {
        "k = 1": uniform_masks(2 * SIDE, 1), "k = 2": uniform_masks(2 * SIDE, 2), "k = 3": uniform_masks(2 * SIDE, 3),
        "across": across, "the cliques": {FIRST: 0.5, SECOND: 0.5}, "adaptive": {FIRST: share[0], SECOND: share[1]},
    }  # fmt: skip


def _barrier(size: int, places: int) -> dict[str, float]:
    """The slope of log C at strong coupling, by differences, and the barrier that it should be."""
    low, high = 1.5, 1.75
    constants = [spectrum(blocks(ising(clique(places), coupling), size)).poincare for coupling in (low, high)]
    slope = float(np.log(constants[1] / constants[0])) / (high - low)
    cost = [2 * turned * (places - turned) for turned in range(places + 1)]
    least = [0.0] + [np.inf] * places  # of the largest cost on the way, by spins turned
    for _ in range(places):
        for here in range(places + 1):
            for there in range(max(0, here - size), min(places, here + size) + 1):
                least[there] = min(least[there], max(least[here], cost[there]))
    return {"m": places, "k": size, "d log C / dJ": slope, "B": float(least[places])}
