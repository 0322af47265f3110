"""Does masking that follows the dependence help a trained network? Uniform masks, spans and informative tokens.

The first claim compares log ratios to uniform masks, network by network, with 0: it is rejected if the mean of any is
below 0 by Student's interval, one-sided, with the spread within a system, at FALSE_ALARM divided by the number of
ratios. The second is rejected if the mean log ratio of spans is below 0: by the spread at seed 0 (0.2 in a mean of
0.75, four networks) that is 7 standard errors away, a probability far below FALSE_ALARM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from besag.lab.experiment import Drawing, Finding, register
from besag.lab.learning.information import information
from besag.lab.learning.masks import masks_of
from besag.lab.pictures import COLOURS, dressed
from besag.lab.seeds import FALSE_ALARM, Sure, against, decided, ratio, table, told
from besag.lab.systems.grammar import grammar
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising
from besag.lab.systems.system import System
from besag.lab.trained import Kind, TrainedExperiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAWS = ("uniform", "spaced", "span", "informask")  # at random; apart; neighbours together; what others tell of
HEADS = "trained on", "law"
MEASURES = ("one hidden", "any number hidden", "Gibbs law")


@register
@dataclass(frozen=True)
class TrainedLaws(TrainedExperiment):
    name: ClassVar[str] = "trained_laws"
    title: ClassVar[str] = "does masking that follows the dependence help a trained network?"
    simulated: ClassVar[bool] = True
    claim: ClassVar[str] = (
        "at the same rate and compute, neither hiding neighbours together nor hiding them apart brings the answers of "
        "a network that answers in one pass nearer to the truth; together is worse"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024", "joshi2020")

    seeds: Annotated[int, "networks of each kind; twice as many with --full"] = 4

    def measure(self, full: bool) -> Finding:
        spins = ising(chain(6), 0.7)
        systems: dict[str, tuple[System, float, int]] = {
            "6 spins": (spins, 0.5, 5000),
            "grammar": (grammar(), 0.4, 2000),
        }
        kinds: dict[tuple[str, str], Kind] = {
            (called, law): (system, {"law": law, "rate": rate}, sequences)
            for called, (system, rate, sequences) in systems.items() for law in LAWS
        }  # fmt: skip
        found = self.networks(kinds, MEASURES, full)
        steps, seeds = self.size(full)
        expected = {law: information(spins, masks_of(law, spins, 0.5, 1024), "token").inflation() for law in LAWS}
        ratios = {
            (called, law, name): ratio(found[called, law][:, at], found[called, "uniform"][:, at])
            for called in systems for law in LAWS if law != "uniform" for at, name in enumerate(MEASURES)
        }  # fmt: skip
        at = MEASURES.index("one hidden")
        nearer = [np.array([np.log(found[called, "uniform"][:, at] / found[called, law][:, at])
                            for law in LAWS if law != "uniform"]) for called in systems]  # fmt: skip
        said = [f"{called}, {law}: {told(one)}" for (called, law, name), one in ratios.items() if name == MEASURES[1]]
        return Finding(
            shown=f"Against uniform masks the distance over any number of hidden places changes by {'; '.join(said)}.",
            claims={
                "no law brings answers at one hidden place surely nearer to the truth than uniform masks do": bool(
                    all((decided(one, FALSE_ALARM / (len(systems) * len(one)), pool=True) <= 1).all() for one in nearer)
                ),
                "spans are worse on the spins": ratios["6 spins", "span", "one hidden"].value > 1,
            },
            tables={
                f"{seeds} networks each, {steps} steps: mean ± 95 % over seeds": table(found, HEADS, MEASURES),
                "against uniform masks, seed by seed: ratio (95 %)": against(found, "uniform", HEADS, MEASURES),
                "what theory expects on the spins: token loss, couplings as θ, one mask a sequence": [
                    {"law": law, "tr(IΓ)/d": expected[law]} for law in LAWS
                ],
            },
            arrays={f"{called}, {law}": values for (called, law), values in found.items()},
            figures={"ratios": Drawing(
                "Distance from the truth against uniform masks, seed by seed, with 95 % intervals; below 1 is better.",
                lambda ax: _draw(ax, ratios), (6.4, 5.2),
            )},
            notes=(
                "rates: 1/2 on the chain of 6 spins at J = 0.7 (5,000 sequences), 0.4 on the grammar (2,000)",
                "a law that looks at tokens tilts what a network learns; nothing was done about it here",
            ),
        )  # fmt: skip


def _draw(ax: Axes, ratios: dict[tuple[str, str, str], Sure]) -> None:
    named = list(ratios)
    for at, key in enumerate(named):
        middle, low, high = ratios[key]
        colour = COLOURS[LAWS.index(key[1])]
        ax.errorbar([middle], [at], xerr=[[middle - low], [high - middle]], fmt="o", color=colour, capsize=3)
    ax.axvline(1, color="0.4", linewidth=1)
    dressed(ax, "distance, of that with uniform masks", "", xscale="log")
    ax.set_xticks([0.25, 0.5, 1, 2, 4, 8], ["¼", "½", "1", "2", "4", "8"])
    ax.minorticks_off()
    ax.set_yticks(range(len(named)), [f"{called}, {law}: {name}" for called, law, name in named])
    ax.invert_yaxis()
