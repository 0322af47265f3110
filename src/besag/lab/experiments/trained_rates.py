"""Does hiding more help a trained network, at equal compute? Small transformers on spins and on a grammar, by rate.

A claim is a set of comparisons: log ratios of a measure, network by network, whose means it says are 0 at most. It is
rejected if any mean is above 0 by Student's interval, one-sided, with the spread within all of its comparisons, at
FALSE_ALARM divided by the number of comparisons of all claims: a true claim is rejected with that probability at
most, as far as logarithms of these measures are normal and spread alike. What the numbers leave undecided rejects
nothing; a note counts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.experiment import Drawing, Finding, register
from besag.lab.pictures import dressed, style
from besag.lab.seeds import FALSE_ALARM, against, balance, decided, interval, ratio, table, told
from besag.lab.systems.grammar import grammar
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising
from besag.lab.systems.system import System
from besag.lab.trained import Cells, Kind, TrainedExperiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RATES = {"1/6": 1 / 6, "1/3": 1 / 3, "1/2": 1 / 2, "5/6": 5 / 6}
MEASURES = ("one hidden", "any number hidden", "Gibbs law", "order gap")
UNITS = {
    "one hidden": "KL at 1 hidden place, nats", "any number hidden": "KL at 1 … N hidden, nats",
    "Gibbs law": "TV of the Gibbs law", "order gap": "TV between orders of sweeps",
}  # fmt: skip
HEADS = "trained on", "hidden"


@register
@dataclass(frozen=True)
class TrainedRates(TrainedExperiment):
    name: ClassVar[str] = "trained_rates"
    title: ClassVar[str] = "does hiding more help a trained network, at equal compute?"
    simulated: ClassVar[bool] = True
    claim: ClassVar[str] = (
        "at the same number of steps on the same number of tokens, a network answers best for as many hidden places as "
        "it was trained with; hiding most places does not make its single-site answers, or the Gibbs law, better"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024", "wettig2023")

    def measure(self, full: bool) -> Finding:
        spins = ising(chain(6), 0.7)
        systems: dict[str, tuple[System, int]] = {
            "6 spins, 300 sequences": (spins, 300),
            "6 spins, 5,000 sequences": (spins, 5000),
            "grammar, 2,000 sentences": (grammar(), 2000),
        }
        kinds: dict[tuple[str, str], Kind] = {
            (called, name): (system, {"rate": rate}, sequences)
            for called, (system, sequences) in systems.items() for name, rate in RATES.items()
        }  # fmt: skip
        found = self.networks(kinds, MEASURES, full)
        steps, seeds = self.size(full)
        compared = _compared(found)
        tail = FALSE_ALARM / sum(map(len, compared.values()))
        verdicts = {said: decided(one, tail, pool=True) for said, one in compared.items()}
        return Finding(
            shown=_answer(found),
            claims={said: bool((one <= 1).all()) for said, one in verdicts.items()},
            tables={
                f"{seeds} networks each, {steps} steps of 64 sequences: mean ± 95 % over seeds": table(
                    found, HEADS, MEASURES
                ),
                "against hiding 1/6, seed by seed: ratio (95 %)": against(found, "1/6", HEADS, MEASURES),
            },
            arrays={f"{called}, {rate}": values for (called, rate), values in found.items()},
            figures={named: Drawing(
                f"{UNITS[named]}, by the share of places hidden in training; equal compute, mean and 95 % interval "
                f"over {seeds} networks, cut where it would reach 0.", _drawing(found, named),
            ) for named in MEASURES[:3]},
            notes=(
                "2 layers of width 32; every context is asked, so that only the training is random",
                balance(list(verdicts.values())),
                "Gibbs law: what 200 sweeps make of the truth; order gap: left-to-right against right-to-left sweeps",
            ),
        )  # fmt: skip


def _compared(found: Cells) -> dict[str, Floats]:
    """Claims, and (comparisons, networks) the log ratios whose means they say are 0 at most."""

    def ratios(measure: str, less: str, more: str, among: str = "") -> list[Floats]:
        at = MEASURES.index(measure)
        systems = dict.fromkeys(called for called, _ in found if among in called)
        return [np.log(found[called, less][:, at] / found[called, more][:, at]) for called in systems]

    named = "any number hidden"
    return {
        "one hidden place: hiding 5/6 in training is worse than 1/6, everywhere": np.array(
            ratios("one hidden", "1/6", "5/6")
        ),
        "any number hidden: hiding 1/2 is better than 1/6 and than 5/6 on spins": np.array(
            [*ratios(named, "1/2", "1/6", "spins"), *ratios(named, "1/2", "5/6", "spins")]
        ),
        "Gibbs law: hiding 5/6 in training is farther from the truth than 1/6, everywhere": np.array(
            ratios("Gibbs law", "1/6", "5/6")
        ),
    }


def _answer(found: Cells) -> str:
    """The change from hiding 1/6 to hiding more, in words."""
    said = []
    for called, rate in (("6 spins, 5,000 sequences", "1/3"), ("6 spins, 300 sequences", "1/3"),
                         ("6 spins, 5,000 sequences", "5/6")):  # fmt: skip
        changes = [
            f"{name} {told(ratio(found[called, rate][:, at], found[called, '1/6'][:, at]))}"
            for at, name in enumerate(MEASURES[:3])
        ]
        said.append(f"{rate} on {called}: {', '.join(changes)}")
    return f"Distances from the truth against those of hiding 1/6 at equal compute. {'; '.join(said)}."


def _drawing(found: Cells, named: str) -> Any:
    def draw(ax: Axes) -> None:
        at = MEASURES.index(named)
        for number, called in enumerate(dict.fromkeys(called for called, _ in found)):
            middle, _, high = np.array([interval(found[called, rate][:, at]) for rate in RATES]).T
            half = high - middle
            where = np.arange(len(RATES)) + 0.08 * (number - 1)
            look = style(number)
            arms = np.minimum(half, 0.9 * middle), half  # on a logarithmic scale nothing reaches 0
            ax.errorbar(where, middle, arms, capsize=3, label=called, markersize=5, **look)
        dressed(ax, "share of places hidden in training", UNITS[named], yscale="log")
        ax.set_xticks(range(len(RATES)), list(RATES))

    return draw
