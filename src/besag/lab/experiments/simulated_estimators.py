"""Estimators drawn, masked and fitted many times over: do they scatter as the asymptotic covariance says?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from besag.checks import number, whole_number
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.estimators import Estimates, simulate
from besag.lab.learning.information import information
from besag.lab.learning.masks import LOSSES, uniform_masks
from besag.lab.pictures import COLOURS, MARKS, dressed
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES = 4
DRAWS = (1, 4)


@register
@dataclass(frozen=True)
class SimulatedEstimators(Experiment):
    name: ClassVar[str] = "simulated_estimators"
    title: ClassVar[str] = "simulated estimators against their asymptotic covariance"
    claim: ClassVar[str] = "√n (θ̂ − θ) scatters as N(0, H⁻¹ (G/m + (1 − 1/m) B) H⁻¹), for both losses and any m"
    cite: ClassVar[tuple[str, ...]] = ("li2024", "besag1975")

    coupling: Annotated[float, "J of the 4-spin chain"] = 0.5
    repeats: Annotated[int, "data sets of each kind; five times as many with --full"] = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.coupling, "coupling", least=0, most=2)
        whole_number(self.repeats, "repeats", least=10, most=10**5)

    def measure(self, full: bool) -> Finding:
        spins = ising(chain(PLACES), float(self.coupling))
        sequences, repeats = (20_000, 5 * self.repeats) if full else (4000, self.repeats)
        found: dict[tuple[str, int, int], Estimates] = {}
        for loss in LOSSES:
            for size in range(1, PLACES + 1):
                masks = uniform_masks(PLACES, size)
                if information(spins, masks, loss).singular:
                    continue
                for draws in DRAWS:
                    found[loss, size, draws] = simulate(spins, masks, loss, sequences, draws, repeats, self.seed + size)
        rows: list[dict[str, Any]] = [
            {"loss": loss, "k": size, "masks a sequence": draws, "theory: tr(IΓ)/d": one.theory.inflation(draws),
             "simulated": one.inflation, "band, low": one.band[0], "band, high": one.band[1],
             "inside": one.band[0] <= one.inflation <= one.band[1], "no estimate": one.failed}
            for (loss, size, draws), one in found.items()
        ]  # fmt: skip
        inside, allowed = sum(row["inside"] for row in rows), 1  # 99 % bands: one of so many may lie outside
        return Finding(
            shown=(
                f"{inside} of {len(rows)} simulated covariances lie in the 99 % band of theory "
                f"({repeats} data sets of {sequences:,} sequences each)."
            ),
            claims={
                f"at most {allowed} of {len(rows)} simulated covariances lies outside its 99 % band": bool(
                    inside >= len(rows) - allowed
                ),
                "every data set has an estimate": not any(row["no estimate"] for row in rows),
            },
            tables={f"4 spins on a chain, J = {self.coupling:g}": rows},
            arrays={f"{loss} k={size} m={draws}": one.estimates for (loss, size, draws), one in found.items()},
            figures={"bands": Drawing(
                "Simulated (marks) and exact (lines, with 99 % bands) number of sequences for each of maximum "
                f"likelihood; J = {self.coupling:g}, one or four masks a sequence.",
                lambda ax: self._draw(ax, found),
            )},
            notes=(
                "the token loss with all four places hidden is singular and has no estimate",
                "m masks a sequence; H is the Hessian of the loss, G the covariance of a gradient with one fresh mask, "
                "B that of its mean over all masks",
            ),
        )  # fmt: skip

    @staticmethod
    def _draw(ax: Axes, found: dict[tuple[str, int, int], Estimates]) -> None:
        for number_of, (loss, draws) in enumerate([(loss, draws) for loss in LOSSES for draws in DRAWS]):
            kept = {size: one for (kind, size, times), one in found.items() if (kind, times) == (loss, draws)}
            sizes = np.array(list(kept)) + 0.06 * (number_of - 1.5)
            line = [one.theory.inflation(draws) for one in kept.values()]
            low, high = zip(*(one.band for one in kept.values()), strict=True)
            colour = COLOURS[number_of]
            ax.plot(sizes, line, color=colour, linestyle="-" if loss == "block" else "--", linewidth=1.2)
            ax.errorbar(sizes, line, [np.subtract(line, low), np.subtract(high, line)], fmt="none", ecolor=colour,
                        capsize=3)  # fmt: skip
            ax.plot(sizes, [one.inflation for one in kept.values()], color=colour, marker=MARKS[number_of],
                    linestyle="none", label=f"{loss}, {draws} mask{'s' * (draws > 1)}")  # fmt: skip
        dressed(ax, "k, places hidden of 4", "tr(IΓ)/d, sequences per one of ML")
        ax.set_xticks(range(1, PLACES + 1))
        ax.set_ylim(0, None)
