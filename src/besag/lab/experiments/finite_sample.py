"""The finite-sample bound: how often it holds, and how loose it is.

Each case draws `repeats` data sets; the theorem says that each is covered with probability 1 − δ at least. A case
rejects the theorem if fewer are covered than the exact binomial quantile of (repeats, 1 − δ) at FALSE_ALARM divided
by the number of cases: all cases together raise a false alarm with probability FALSE_ALARM at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.checks import number
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.bound import finite_sample_bound, least_conditional, tensorisation_bound
from besag.lab.learning.masks import uniform_masks
from besag.lab.pictures import dressed, style
from besag.lab.seeds import FALSE_ALARM, binomial
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import Pairwise, ising

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES, MASKS = 4, 4


@register
@dataclass(frozen=True)
class FiniteSample(Experiment):
    name: ClassVar[str] = "finite_sample"
    title: ClassVar[str] = "a finite-sample bound and its coverage"
    simulated: ClassVar[bool] = True
    claim: ClassVar[str] = (
        "for finitely many laws, the truth among them, with block conditionals above β and entropy tensorised with a "
        "constant C, the learnt law is within the bound of the truth in total variation with chance 1 − δ"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    chance: Annotated[float, "δ, that the bound may fail"] = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.chance, "chance", least=1e-6, most=0.5)

    def measure(self, full: bool) -> Finding:
        laws = [ising(chain(PLACES), float(one), parameters="coupling") for one in np.linspace(0.1, 0.5, 41)]
        repeats = 2000 if full else 200
        sequences = [100, 1000, 10_000, 100_000]
        rows: list[dict[str, Any]] = []
        for size in (1, 2, 3):
            masks = uniform_masks(PLACES, size)
            floor, constant = least_conditional(laws, masks), max(tensorisation_bound(one, masks) for one in laws)
            for count in sequences:
                bound = finite_sample_bound(count, len(laws), floor, constant, self.chance)
                away = self._distances(laws, size, count, repeats)
                rows.append({
                    "k": size, "n": count, "β": floor, "C, at most": constant, "bound": bound.value,
                    "slow": bound.slow, "fast": bound.fast, "TV, mean": float(away.mean()),
                    f"TV, {1 - self.chance:.0%}": float(np.quantile(away, 1 - self.chance)),
                    "covered": float((away <= bound.value).mean()),
                })  # fmt: skip
        useful = [row for row in rows if row["bound"] < 1]
        few = binomial(repeats, 1 - self.chance, FALSE_ALARM / len(rows))[0]
        return Finding(
            shown=(
                f"The bound covered {min(row['covered'] for row in rows):.1%} of data sets or more in every case and "
                f"is below 1 in {len(useful)} of {len(rows)}; it is far above what happens."
            ),
            claims={
                f"coverage is at least 1 − δ = {1 - self.chance:g}: {few} of {repeats} data sets or more": all(
                    row["covered"] * repeats > few - 0.5 for row in rows
                ),
                "somewhere the bound says something, below 1": bool(useful),
            },
            tables={f"{len(laws)} couplings to choose from, the truth J = 0.3, {MASKS} masks a sequence": rows},
            arrays={"n": np.array(sequences), "bound": np.array([row["bound"] for row in rows]).reshape(3, -1)},
            figures={"bound": Drawing(
                "Total variation between the learnt law and the truth: bound (lines, 1 at most) and what "
                f"{1 - self.chance:.0%} of data sets stay within (marks; 0 is not drawn).",
                lambda ax: self._draw(ax, rows, sequences),
            )},
            notes=(
                "assumed: finitely many laws, the truth among them, every block conditional at least β",
                "C is bounded from above by the Poincaré constant times log(1/p* − 1)/(1 − 2p*), p* the least "
                "probability",
            ),
        )  # fmt: skip

    def _distances(self, laws: list[Pairwise], size: int, count: int, repeats: int) -> Floats:
        """(repeats,) TV of the law with the least block loss over `MASKS` masks a sequence."""
        generator, truth = np.random.default_rng((self.seed, size, count)), len(laws) // 2
        sets = list(uniform_masks(PLACES, size))
        answers = np.stack([[one.conditional(hidden).ravel() for hidden in sets] for one in laws])  # (M, sets, S)
        apart = np.array([0.5 * np.abs(one.law - laws[truth].law).sum() for one in laws])
        drawn = generator.multinomial(count, laws[truth].law.ravel(), size=repeats)  # (R, S)
        masked = generator.multinomial(drawn * MASKS, np.full(len(sets), 1 / len(sets)))  # (R, S, sets)
        chosen = np.einsum("rsk,mks->rm", masked.astype(np.float64), -np.log(answers)).argmin(1)
        return np.asarray(apart[chosen])

    def _draw(self, ax: Axes, rows: list[dict[str, Any]], sequences: list[int]) -> None:
        for number_of, size in enumerate((1, 2, 3)):
            kept = [row for row in rows if row["k"] == size]
            look = style(number_of)
            ax.plot(sequences, [row["bound"] for row in kept], label=f"k = {size}: bound", **{**look, "marker": ""})
            seen = np.array([row[f"TV, {1 - self.chance:.0%}"] for row in kept])
            ax.plot(sequences, np.where(seen > 0, seen, np.nan), color=look["color"], marker=look["marker"],
                    linestyle="none", label=f"k = {size}: seen")  # fmt: skip
        dressed(ax, "n, sequences", "total variation", xscale="log", yscale="log")
        ax.set_ylim(3e-4, 1.5)
        ax.legend(loc="lower left", fontsize=9.5, frameon=False)
