"""Where enumeration ends: bounds from coupling and autocorrelation, with the exact numbers as far as they go.

Where the exact number is known, each bound is compared at FALSE_ALARM divided by the number of comparisons: of coupling
by the exact binomial quantile of the pairs' times, of autocorrelation by Student's over chains (approximate, for a mean
over 64 chains). All comparisons together fail with probability FALSE_ALARM at most if both are bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.checks import number
from besag.lab.chains import coalescence, gibbs, mixing_bracket, relaxation_seen
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.pictures import curves
from besag.lab.seeds import FALSE_ALARM
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising

ENUMERATED = 14  # spins, at most, of which bounds on the exact mixing time are computed


@register
@dataclass(frozen=True)
class Beyond(Experiment):
    name: ClassVar[str] = "beyond"
    title: ClassVar[str] = "mixing where enumeration ends"
    simulated: ClassVar[bool] = True
    claim: ClassVar[str] = (
        "coupling bounds the mixing time from above and autocorrelation the relaxation time from below"
    )
    cite: ClassVar[tuple[str, ...]] = ("levin2017",)

    coupling: Annotated[float, "of neighbours on a chain"] = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.coupling, "coupling", least=0, most=1)

    def measure(self, full: bool) -> Finding:
        sizes = [4, 6, 8, 10, 12, 14, 32, 64] if full else [4, 6, 8, 10, 12, 32]
        rows: list[dict[str, Any]] = []
        tail = FALSE_ALARM / (3 * sum(places <= ENUMERATED for places in sizes))
        for places in sizes:
            system = ising(chain(places), self.coupling)
            exact = mixing_bracket(gibbs(system)) if places <= ENUMERATED else None
            met = coalescence(system, 400 if full else 200, seed=self.seed)
            seen = relaxation_seen(system, 64, 40 * places, 400 * places if full else 200 * places, self.seed, tail)
            rows.append({
                "spins": places, "1/gap": 1 / exact.gap if exact else np.nan, "seen, from below": seen.relaxation,
                "seen, low": seen.low, "seen, high": seen.high, "t(¼), at least": exact.lower if exact else np.nan,
                "t(¼), at most": exact.upper if exact else np.nan, "coupling, at most": met.upper(tail=tail),
            })  # fmt: skip
        known = [row for row in rows if not np.isnan(row["1/gap"])]
        shown = ("1/gap", "seen, from below", "t(¼), at least", "t(¼), at most", "coupling, at most")
        named = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in shown}
        above = [row["coupling, at most"] / row["t(¼), at least"] for row in known
                 if row["t(¼), at least"] == row["t(¼), at most"]]  # fmt: skip
        off = [abs(row["seen, from below"] / row["1/gap"] - 1) for row in known]
        return Finding(
            shown=(
                "Pairs of chains that share every draw bound the mixing time of any ferromagnet, at any size; here at "
                f"{min(above):.1f} to {max(above):.1f} times the exact one, where that is known. The magnetisation "
                f"shows the relaxation time to {max(off):.0%}."
            ),
            claims={
                "coupling is never below the exact mixing time": all(
                    row["coupling, at most"] >= row["t(¼), at least"] for row in known
                ),
                "what is seen is at most the relaxation time, up to its interval": all(
                    row["seen, low"] <= row["1/gap"] for row in known
                ),
                "and at least two thirds of it": all(row["seen, high"] >= row["1/gap"] * 2 / 3 for row in known),
                "every pair met, at the largest size too": bool(np.isfinite(named["coupling, at most"]).all()),
            },
            tables={f"Ising chains, J = {self.coupling:g}, single-site Gibbs (steps)": rows},
            arrays={"spins": np.array(sizes), **named},
            figures={"sizes": Drawing(
                "Steps against the number of spins: the relaxation time exactly and as seen, the mixing time exactly "
                "up to 10 spins and within bounds beyond, and the bound from coupling at every size.",
                lambda ax: _draw(ax, sizes, named),
                (6.4, 4.0),
            )},
            notes=("to 10 spins every start is looked at; to 14 the bounds are of stated starts and the gap",),
        )  # fmt: skip


def _draw(ax: Any, sizes: list[int], named: dict[str, Floats]) -> None:
    curves(ax, sizes, named, "spins", "steps", xscale="log", yscale="log")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
