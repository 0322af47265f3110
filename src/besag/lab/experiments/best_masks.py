"""The best law of masks at a fixed number of passes: what it looks like, and whether it follows the dependence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.best_law import BestLaw, best_law
from besag.lab.learning.information import information
from besag.lab.learning.masks import LOSSES, Loss, uniform_masks
from besag.lab.pictures import dressed, style
from besag.lab.systems.graphs import Graph, chain, clique, cycle, star
from besag.lab.systems.pairwise import Pairwise, Parameters, ising

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRAPHS = (chain(4), star(5), cycle(5), clique(4))
KINDS: tuple[Parameters, ...] = ("couplings", "both")
SHOWN = 6  # sets of a law that a table names


@register
@dataclass(frozen=True)
class BestMasks(Experiment):
    name: ClassVar[str] = "best_masks"
    title: ClassVar[str] = "the best law of masks at a fixed number of passes"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = (
        "the best block law hides well-connected single sites where coupling is weak and coupled blocks where it is "
        "strong; the best law for tokens, where coupling is weak, hides places that are not coupled to one another"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    def measure(self, full: bool) -> Finding:
        couplings = (0.1, 0.3, 0.6, 1.0, 1.5, 2.0) if full else (0.3, 1.0, 2.0)
        starts = 50 if full else 10
        rows, found = [], {}
        for graph in GRAPHS:
            for coupling in couplings:
                spins = ising(graph, coupling)
                for loss in LOSSES:
                    best = found[graph.name, coupling, loss] = best_law(spins, loss, starts=starts, seed=self.seed)
                    rows.append(_row(spins, graph, coupling, best))
        chains = found["chain", 0.3, "block"]
        weak = [found[graph.name, 0.3, "token"] for graph in GRAPHS if graph.name in ("chain", "star")]
        inner = [chains.masks.get((place,), 0.0) for place in (1, 2)]
        penalty = np.array([[[_penalty(ising(graph, coupling, 0.0, kind)) for coupling in couplings]
                             for graph in GRAPHS] for kind in KINDS])  # (kinds, graphs, J)  # fmt: skip
        claims = {
            "block: every law is certified, d_K ≤ φ for all K": all(
                one.certified for (_, _, loss), one in found.items() if loss == "block"
            ),
            "4-spin chain, J = 0.3, block: half each on the inner sites, 1.82 against 2.12": bool(
                np.allclose(inner, 0.5, atol=1e-3) and round(chains.value, 2) == 1.82
            ),
            "block, couplings, J = 0.3: no sets are better than single sites": bool((penalty[0, :, 0] < 1.001).all()),
            "block, couplings and fields, J = 2: single sites cost over ten times as much as the best law": bool(
                (penalty[1, :, -1] > 10).all()
            ),
            "token, J = 0.3, chain and star: no two places hidden together are coupled": all(
                _coupled(one, graph) < 1e-3 for one, graph in zip(weak, (chain(4), star(5)), strict=True)
            ),
        }
        return Finding(
            shown=(
                "It follows the dependence. Where a block costs a pass a place, well-connected single sites are best "
                "while coupling is weak, and when it is strong coupled blocks, without which fields can hardly be "
                "learnt; where one pass answers for all hidden places, it is best spent, while coupling is weak, on "
                "places that say nothing of each other."
            ),
            claims=claims,
            tables={"couplings as parameters, one pass on average": rows},
            arrays={"coupling": np.array(couplings), "single sites against any sets, block": penalty},
            figures={
                "value": Drawing(
                    "What the best law needs, in sequences × passes for each sequence of maximum likelihood, against "
                    "uniform single sites: 4 spins on a chain.",
                    lambda ax: self._draw(ax, found, couplings),
                ),
                "blocks": Drawing(
                    "What it costs to hide single sites only: the best such law against the best of all, block loss. "
                    "Strong colours: couplings and fields are learnt; faint: couplings alone.",
                    lambda ax: self._draw_penalty(ax, couplings, penalty),
                ),
            },
            notes=(
                "block: to hide K costs |K| passes, convex, certified by its derivatives; often other laws are as good",
                f"token: one pass whatever K; not convex: the best of {starts} descents, without a proof",
            ),
        )

    @staticmethod
    def _draw(ax: Axes, found: dict[tuple[str, float, Loss], BestLaw], couplings: tuple[float, ...]) -> None:
        for number, loss in enumerate(LOSSES):
            values = [found["chain", coupling, loss].value for coupling in couplings]
            ax.plot(couplings, values, label=f"{loss}: best law", **style(number))
        single = [information(ising(chain(4), one), uniform_masks(4, 1)).inflation() for one in couplings]
        ax.plot(couplings, single, label="uniform single sites", **style(2))
        ax.set_ylim(0, None)
        dressed(ax, "J, coupling (chain of 4 spins)", "sequences × passes per one of ML")

    @staticmethod
    def _draw_penalty(ax: Axes, couplings: tuple[float, ...], penalty: Floats) -> None:
        for number, graph in enumerate(GRAPHS):
            ax.plot(couplings, penalty[1, number], label=f"{graph.name} of {graph.places}", **style(number))
            ax.plot(couplings, penalty[0, number], alpha=0.35, **style(number))
        dressed(ax, "J, coupling", "best single-site law / best law", yscale="log")


def _penalty(spins: Pairwise) -> float:
    return best_law(spins, "block", [(place,) for place in range(spins.places)]).value / best_law(spins).value


def _row(spins: Pairwise, graph: Graph, coupling: float, best: BestLaw) -> dict[str, Any]:
    heaviest = sorted(best.masks.items(), key=lambda item: -item[1])
    named = [f"{''.join(map(str, hidden))}: {chance:.2f}" for hidden, chance in heaviest[:SHOWN] if chance >= 0.005]
    more = len([chance for _, chance in heaviest if chance >= 0.005]) - len(named)
    return {
        "graph": f"{graph.name} of {graph.places}", "J": coupling, "loss": best.loss, "value": best.value,
        "single sites": information(spins, uniform_masks(graph.places, 1)).inflation(),
        "places at a time": _mean_size(best),
        "proved": "certified" if best.certified else f"{best.reached} of {best.starts} starts",
        "chance of each set": ", ".join(named) + (f", {more} more" if more else ""),
    }  # fmt: skip


def _mean_size(best: BestLaw) -> float:
    return sum(chance * len(hidden) for hidden, chance in best.masks.items())


def _coupled(best: BestLaw, graph: Graph) -> float:
    """The chance that two coupled places are hidden together."""
    return sum(
        chance for hidden, chance in best.masks.items() if any(pair in graph.edges for pair in combinations(hidden, 2))
    )
