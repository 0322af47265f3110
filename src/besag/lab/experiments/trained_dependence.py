"""What becomes of a trained network as places depend more on each other? Spins of growing coupling; rate and data.

A claim is a set of comparisons: log ratios of a measure, network by network, whose means it says are 0 at most. It is
rejected if any mean is above 0 by Student's interval, one-sided, with the spread within all of its comparisons of one
coupling, at FALSE_ALARM divided by the number of comparisons of all claims: a true claim is rejected with that
probability at most, as far as logarithms of these measures are normal and spread alike. What the numbers leave
undecided rejects nothing; a note counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.experiment import Drawing, Finding, register
from besag.lab.pictures import dressed, style
from besag.lab.seeds import FALSE_ALARM, balance, decided, interval, table
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import Pairwise, ising
from besag.lab.trained import Cells, Kind, TrainedExperiment, sweep_relaxation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES = 6
COUPLINGS = (0.2, 0.7, 1.2)
DATA = {"300 sequences": 300, "5,000 sequences": 5000}
RATES = {"1/6 hidden": 1 / 6, "1/2 hidden": 1 / 2}
MEASURES = ("one hidden", "order gap", "Gibbs law", "relaxation")
UNITS = {
    "one hidden": "KL at 1 hidden place, nats", "order gap": "TV between orders of sweeps",
    "Gibbs law": "TV of the Gibbs law", "relaxation": "Sweeps to forget, 1/(1 − |λ₂|)",
}  # fmt: skip


@register
@dataclass(frozen=True)
class TrainedDependence(TrainedExperiment):
    name: ClassVar[str] = "trained_dependence"
    title: ClassVar[str] = "what a trained network makes of strong dependence"
    simulated: ClassVar[bool] = True
    claim: ClassVar[str] = (
        "as places depend more on one another the sampler of a trained network slows down as the true one does, at any "
        "rate and with much data as with little"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    def measure(self, full: bool) -> Finding:
        spins = {coupling: ising(chain(PLACES), coupling) for coupling in COUPLINGS}
        kinds: dict[tuple[str, str], Kind] = {
            (_where(coupling), f"{data}, {hidden}"): (system, {"rate": rate}, sequences)
            for coupling, system in spins.items() for data, sequences in DATA.items() for hidden, rate in RATES.items()
        }  # fmt: skip
        found = self.networks(kinds, MEASURES, full)
        steps, seeds = self.size(full)
        own = np.array([_relaxation(system) for system in spins.values()])
        ways = list(dict.fromkeys(way for _, way in found))
        slow, bias = (_means(found, ways, name) for name in ("relaxation", "Gibbs law"))  # (ways, couplings)
        verdicts = _verdicts(found, ways, own)
        return Finding(
            shown=_shown(own, slow, bias),
            claims={said: bool((one <= 1).all()) for said, one in verdicts.items()},
            tables={
                f"{seeds} networks each, {steps} steps of 64 sequences: mean ± 95 % over seeds": table(
                    found, ("coupling", "trained with"), MEASURES
                ),
                "sweeps to forget: of the truth, and of what was learnt": [
                    {"J": coupling, "truth": own[at], **{way: slow[by, at] for by, way in enumerate(ways)}}
                    for at, coupling in enumerate(COUPLINGS)
                ],
            },
            arrays={"coupling": np.array(COUPLINGS), "truth": own,
                    **{f"{where}, {way}": values for (where, way), values in found.items()}},
            figures={named: Drawing(
                f"{UNITS[named]}, against the coupling of {PLACES} spins on a chain; equal compute, mean and 95 % "
                f"interval over {seeds} networks, cut where it would reach 0"
                + ("; black: the true chain." if named == "relaxation" else "."),
                _drawing(found, ways, named, own),
            ) for named in ("relaxation", "Gibbs law", "one hidden")},
            notes=(
                "2 layers of width 32; every context is asked, so that only the training is random",
                balance([one.ravel() for one in verdicts.values()]),
                "a sweep draws each place once, left to right; Gibbs law: what 200 sweeps make of the truth",
            ),
        )  # fmt: skip


def _where(coupling: float) -> str:
    return f"J = {coupling:g}"


def _relaxation(system: Pairwise) -> float:
    return sweep_relaxation([system.conditional([place]) for place in range(PLACES)])


def _verdicts(found: Cells, ways: list[str], own: Floats) -> dict[str, Floats]:
    """Claims, and whether each of their comparisons is decided; those of one coupling share their spread."""
    at = MEASURES.index("relaxation")
    off = np.log([[found[_where(coupling), way][:, at] for way in ways] for coupling in COUPLINGS])  # (J, ways, seeds)
    compared = {
        "the learnt chain slows down as coupling grows, at each rate and size of data": list(-np.diff(off, axis=0)),
        "it forgets within half and twice the sweeps of the true one": [
            sign * (one - np.log(truth)) - np.log(2) for one, truth in zip(off, own, strict=True) for sign in (1, -1)
        ],
    }
    tail = FALSE_ALARM / sum(len(one) for cells in compared.values() for one in cells)
    return {said: np.array([decided(one, tail, pool=True) for one in cells]) for said, cells in compared.items()}


def _means(found: Cells, ways: list[str], name: str) -> Floats:
    """(ways, couplings) over seeds."""
    at = MEASURES.index(name)
    return np.array([[found[_where(coupling), way][:, at].mean() for coupling in COUPLINGS] for way in ways])


def _shown(own: Floats, slow: Floats, bias: Floats) -> str:
    ratio, weak, strong = slow / own, COUPLINGS[0], COUPLINGS[-1]
    return (
        f"From J = {weak:g} to {strong:g} the true chain slows down from {own[0]:.1f} to {own[-1]:.1f} sweeps; what "
        f"was learnt takes {ratio.min():.2f} to {ratio.max():.2f} times as long. The law that it settles to is off by "
        f"{bias[:, 0].min():.2f} to {bias[:, 0].max():.2f} in total variation at J = {weak:g}, by "
        f"{bias[:, -1].min():.2f} to {bias[:, -1].max():.2f} at {strong:g}."
    )


def _drawing(found: Cells, ways: list[str], named: str, own: Floats) -> Callable[[Axes], Any]:
    def draw(ax: Axes) -> None:
        at = MEASURES.index(named)
        for number, way in enumerate(ways):
            sure = [interval(found[_where(coupling), way][:, at]) for coupling in COUPLINGS]
            middle, half = np.array([(one.value, one.high - one.value) for one in sure]).T
            where = np.array(COUPLINGS) + 0.012 * (number - 1.5)
            ax.errorbar(where, middle, [np.minimum(half, 0.9 * middle), half], capsize=3, label=way, markersize=5,
                        **style(number))  # fmt: skip
        if named == "relaxation":
            ax.plot(COUPLINGS, own, color="black", linewidth=1.2, label="truth")
        dressed(ax, "coupling J", UNITS[named], yscale="log")
        ax.set_xticks(COUPLINGS, [f"{coupling:g}" for coupling in COUPLINGS])

    return draw
