"""Estimators drawn, masked and fitted many times over: do they scatter as the asymptotic covariance says?

Each row compares tr(IΓ̂)/d of `repeats` data sets with a band around tr(IΓ)/d: two-sided quantiles of a multiple of
χ² (`Estimates.band_of`) that leave out FALSE_ALARM divided by the number of rows. Rows have streams of their own; by
Bonferroni, all rows lie in their bands with probability 1 − FALSE_ALARM at least, up to the order 1/n that the
asymptotic covariance leaves out (n = 4,000 sequences: below a hundredth of a band's width).
"""

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
from besag.lab.seeds import FALSE_ALARM, streams
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
    simulated: ClassVar[bool] = True
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
        kinds = [(loss, size, draws) for loss in LOSSES for size in range(1, PLACES + 1) for draws in DRAWS
                 if not information(spins, uniform_masks(PLACES, size), loss).singular]  # fmt: skip
        found: dict[tuple[str, int, int], Estimates] = {
            (loss, size, draws): simulate(spins, uniform_masks(PLACES, size), loss, sequences, draws, repeats, seed)
            for (loss, size, draws), seed in zip(kinds, streams(self.seed, len(kinds)), strict=True)
        }
        outside = FALSE_ALARM / len(found)
        rows: list[dict[str, Any]] = []
        for (loss, size, draws), one in found.items():
            low, high = one.band_of(outside)
            rows.append({
                "loss": loss, "k": size, "masks a sequence": draws, "theory: tr(IΓ)/d": one.theory.inflation(draws),
                "simulated": one.inflation, "band, low": low, "band, high": high,
                "inside": low <= one.inflation <= high, "no estimate": one.failed,
            })  # fmt: skip
        inside = sum(row["inside"] for row in rows)
        return Finding(
            shown=(
                f"{inside} of {len(rows)} simulated covariances lie in the band of theory, which holds all of them "
                f"with probability {1 - FALSE_ALARM:.1%} ({repeats} data sets of {sequences:,} sequences each)."
            ),
            claims={
                f"all {len(rows)} simulated covariances lie in bands of {1 - outside:.2%} each": inside == len(rows),
                "every data set has an estimate": not any(row["no estimate"] for row in rows),
            },
            tables={f"4 spins on a chain, J = {self.coupling:g}": rows},
            arrays={f"{loss} k={size} m={draws}": one.estimates for (loss, size, draws), one in found.items()},
            figures={"bands": Drawing(
                f"Simulated (marks) and exact (lines, with bands of {1 - outside:.2%}) number of sequences for each of "
                f"maximum likelihood; J = {self.coupling:g}, one or four masks a sequence.",
                lambda ax: self._draw(ax, found, outside),
            )},
            notes=(
                "the token loss with all four places hidden is singular and has no estimate",
                "m masks a sequence; H is the Hessian of the loss, G the covariance of a gradient with one fresh mask, "
                "B that of its mean over all masks",
            ),
        )  # fmt: skip

    @staticmethod
    def _draw(ax: Axes, found: dict[tuple[str, int, int], Estimates], outside: float) -> None:
        for number_of, (loss, draws) in enumerate([(loss, draws) for loss in LOSSES for draws in DRAWS]):
            kept = {size: one for (kind, size, times), one in found.items() if (kind, times) == (loss, draws)}
            sizes = np.array(list(kept)) + 0.06 * (number_of - 1.5)
            line = [one.theory.inflation(draws) for one in kept.values()]
            low, high = zip(*(one.band_of(outside) for one in kept.values()), strict=True)
            colour = COLOURS[number_of]
            ax.plot(sizes, line, color=colour, linestyle="-" if loss == "block" else "--", linewidth=1.2)
            ax.errorbar(sizes, line, [np.subtract(line, low), np.subtract(high, line)], fmt="none", ecolor=colour,
                        capsize=3)  # fmt: skip
            ax.plot(sizes, [one.inflation for one in kept.values()], color=colour, marker=MARKS[number_of],
                    linestyle="none", label=f"{loss}, {draws} mask{'s' * (draws > 1)}")  # fmt: skip
        dressed(ax, "k, places hidden of 4", "tr(IΓ)/d, sequences per one of ML")
        ax.set_xticks(range(1, PLACES + 1))
        ax.set_ylim(0, None)
