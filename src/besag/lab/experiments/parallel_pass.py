"""A parallel pass cannot be a Gibbs step: what the best product loses, in KL and in total variation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.chains import all_sites, independent, nearest_product, one_way, total_correlation
from besag.lab.chains.products import marginals, outer
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.pictures import curves
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising

PLACES = 4
BLOCKS = {"the two inner spins": (1, 2), "all four spins": (0, 1, 2, 3)}
DRAWN = 200  # products, for each context
STARTS = {
    2: 2,
    4: 16,
}  # random ones, by the size of the block: every one finds the best of 2 × 2, two in five that of 2⁴


@register
@dataclass(frozen=True)
class ParallelPass(Experiment):
    name: ClassVar[str] = "parallel_pass"
    title: ClassVar[str] = "one parallel pass cannot be a Gibbs step"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = (
        "a pass that draws a block as a product equals the block's Gibbs step only where the block is independent "
        "given the rest; in KL the best product is that of marginals, at the conditional total correlation"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    def measure(self, full: bool) -> Finding:
        couplings = np.linspace(0, 2, 17 if full else 9)
        steps = [self._step(float(coupling), name) for coupling in couplings for name in BLOCKS]
        chains = [row for coupling in couplings for row in _chains(float(coupling))]
        names = ("KL, marginals", "TV, marginals", "TV, nearest product")
        kl, apart, nearest = (np.array([row[name] for row in steps]).reshape(-1, len(BLOCKS)) for name in names)
        bias = np.array([row["TV(μ, π)"] for row in chains]).reshape(-1, 2)
        return Finding(
            shown=(
                "Whatever product a pass draws from, it misses the block by at least its total correlation given the "
                "rest. That grows with coupling where nothing pins the block, and falls again where its neighbours do. "
                "In total variation another product is nearer than the marginals; chains of such passes settle on a "
                "law of their own."
            ),
            claims={
                "one step loses exactly the conditional total correlation: KL(π ‖ πP_K) = E TC": all(
                    abs(row["KL, marginals"] - row["KL(π ‖ πP), one step"]) < 1e-9 for row in steps
                ),
                f"none of {DRAWN} products drawn for each context has less KL than the marginals": all(
                    row["least KL of others"] >= row["KL, marginals"] - 1e-12 for row in steps
                ),
                "nothing is lost without coupling": bool(max(kl[0].max(), apart[0].max()) < 1e-9),
                "with nothing shown, more is lost the stronger the coupling": bool((np.diff(kl[:, 1]) > 0).all()),
                "between neighbours, most is lost at a coupling in between": 0 < int(kl[:, 0].argmax()) < len(kl) - 1,
                "the nearest product in total variation is another one, nearer wherever J > 0": bool(
                    (nearest[1:] < apart[1:] - 1e-4).all()
                ),
                "parallel chains keep π without coupling, and not with it": bool(
                    bias[0].max() < 1e-9 and bias[1:].min() > 1e-3
                ),
            },
            tables={
                "a block drawn in one pass, averaged over what surrounds it": steps,
                "chains of parallel passes, π the law and μ their own": chains,
            },
            arrays={"coupling": couplings, "kl": kl, "tv_marginals": apart, "tv_nearest": nearest, "bias": bias},
            figures={
                "in KL": Drawing(
                    "The least KL that any product loses of the Gibbs step of a block, 4 spins on a chain: its total "
                    "correlation given the rest.",
                    lambda ax: curves(ax, couplings, dict(zip(BLOCKS, kl.T, strict=True)), "coupling J",
                                      "total correlation (nats)"),
                ),
                "in total variation": Drawing(
                    "Total variation of the Gibbs step from the product of marginals, and from the nearest product "
                    "that was found.",
                    lambda ax: curves(
                        ax, couplings,
                        {f"{name}, {how}": one for how, values in (("marginals", apart), ("nearest", nearest))
                         for name, one in zip(BLOCKS, values.T, strict=True)},
                        "coupling J", "total variation"),
                ),
                "in the long run": Drawing(
                    "How far the law of a chain of parallel passes, blocks of two or all sites, is from π.",
                    lambda ax: curves(ax, couplings, {"independent blocks": bias[:, 0],
                                                      "all sites at once": bias[:, 1]},
                                      "coupling J", "TV(μ, π)", first=4),
                ),
            },
        )  # fmt: skip

    def _step(self, coupling: float, name: str) -> dict[str, Any]:
        """Averages over contexts of a block."""
        law, block = ising(chain(PLACES), coupling).law, BLOCKS[name]
        tables = np.moveaxis(law, block, range(-len(block), 0)).reshape(-1, *[2] * len(block))
        generator = np.random.default_rng(self.seed)
        sums = np.zeros(4)
        for table in tables:
            given = table / table.sum()
            apart = 0.5 * np.abs(given - outer(marginals(given))).sum()
            drawn = [outer(list(factors)) for factors in generator.dirichlet(np.ones(2), size=(DRAWN, len(block)))]
            others = min(float((given * np.log(given / other)).sum()) for other in drawn)
            near = nearest_product(given, STARTS[len(block)], self.seed)[0]
            sums += table.sum() * np.array([total_correlation(given), others, apart, near])
        one_step = float((law * np.log(law / _after(law, block))).sum())
        names = ("KL, marginals", "least KL of others", "TV, marginals", "TV, nearest product")
        return {"J": coupling, "block": name, **dict(zip(names, sums.tolist(), strict=True)),
                "KL(π ‖ πP), one step": one_step}  # fmt: skip


def _after(law: Floats, block: tuple[int, ...]) -> Floats:
    """π P_K for the pass that draws every place of the block from its marginal given the rest."""
    rest = law.sum(block, keepdims=True)
    after = rest
    for place in block:
        after = after * (law.sum(tuple(other for other in block if other != place), keepdims=True) / rest)
    return np.asarray(after)


def _chains(coupling: float) -> list[dict[str, Any]]:
    law, rows = ising(chain(PLACES), coupling).law, []
    for transition in (independent(law, 2), all_sites(law)):
        found = one_way(transition)
        rows.append({
            "J": coupling, "chain": transition.name, "TV(μ, π)": found.bias, "KL(π ‖ μ)": max(0.0, found.divergence),
            "1 − |λ₂|": found.eigenvalue_gap, "1 − σ₂ in L²(μ)": found.singular_gap,
            "σ₁ in L²(π)": float(found.singular_aim[0]),
        })  # fmt: skip
    return rows
