"""Cost in passes: a block of k places takes k forward passes, so fewer steps need not be less work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.lab.chains import blocks, gibbs, independent, mixing_time, one_way
from besag.lab.chains.transition import Transition
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.pictures import curves
from besag.lab.systems.graphs import chain, clique
from besag.lab.systems.pairwise import Pairwise, ising

PLACES = 6


@register
@dataclass(frozen=True)
class Passes(Experiment):
    name: ClassVar[str] = "passes"
    title: ClassVar[str] = "what mixing costs in forward passes"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = (
        "counted in passes, blocks gain nothing where places are independent, and win by as much as they cover what "
        "depends on one another"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    def measure(self, full: bool) -> Finding:
        grids = {"chain": np.linspace(0, 1.5, 13 if full else 7), "clique": np.linspace(0, 0.6, 13 if full else 7)}
        rows: list[dict[str, Any]] = []
        cost: dict[str, dict[str, Any]] = {}
        for kind, couplings in grids.items():
            graph = chain(PLACES) if kind == "chain" else clique(PLACES)
            cost[kind] = {}
            for coupling in couplings:
                for name, transition in _chains(ising(graph, float(coupling))).items():
                    steps = mixing_time(transition)
                    spent = steps * transition.passes
                    bias = one_way(transition).bias if name.startswith("in parallel") else 0.0
                    rows.append({"graph": kind, "J": float(coupling), "chain": name, "t(¼) (steps)": steps,
                                 "passes a step": transition.passes, "passes": spent, "TV(μ, π)": bias})  # fmt: skip
                    cost[kind].setdefault(name, []).append(spent)
        whole = {kind: {name: np.array(one) for name, one in named.items()} for kind, named in cost.items()}
        free, tied = ({name: one[at] for name, one in whole["clique"].items()} for at in (0, -1))
        return Finding(
            shown=(
                "Without coupling all exact chains cost about the same in passes. On a clique a block of all but one "
                "place is much cheaper than single sites, and everything at once is cheapest: it is an independent "
                "draw. The parallel block is cheap and goes to another law."
            ),
            claims={
                "J = 0: no exact random scan costs more than twice another": bool(
                    max(free[name] for name in EXACT) <= 2 * min(free[name] for name in EXACT)
                ),
                "clique, strongest coupling: five places at a time cost under a tenth of single sites": bool(
                    tied["k = 5"] < 0.1 * tied["k = 1"]
                ),
                "at the strongest coupling a whole draw, six passes, is cheaper than any other exact chain": all(
                    bool(named["k = 6"][-1] <= one[-1])
                    for named in whole.values() for name, one in named.items() if not name.startswith("in parallel")
                ),
                "the parallel chain does not keep π once places are coupled (TV > 10⁻⁴)": all(
                    row["TV(μ, π)"] > 1e-4 for row in rows if row["chain"].startswith("in parallel") and row["J"] > 0
                ),
            },
            tables={f"{PLACES} spins, worst start, total variation ¼": rows},
            arrays={f"{kind}, {name}": one for kind, named in whole.items() for name, one in named.items()}
            | {f"{kind}, coupling": one for kind, one in grids.items()},
            figures={kind: Drawing(
                f"Forward passes until total variation ¼ from the worst start, {PLACES} spins on a {kind}, against the "
                "coupling. The parallel block comes near a law of its own instead.",
                lambda ax, kind=kind: curves(  # type: ignore[misc]
                    ax, grids[kind], whole[kind], "coupling J", "forward passes to mix", yscale="log"),
                (6.4, 4.0),
            ) for kind in grids},
            notes=("a block of k places is drawn one after the other, k passes; a parallel one in a single pass",),
        )  # fmt: skip


EXACT = ("k = 1", "k = 2", "k = 3", "k = 5")


def _chains(system: Pairwise) -> dict[str, Transition]:
    exact: dict[str, Transition] = {f"k = {size}": blocks(system, size) for size in (1, 2, 3, 5, 6)}
    return {**exact, "sweep": gibbs(system, "systematic"), "in parallel, k = 3": independent(system, 3)}
