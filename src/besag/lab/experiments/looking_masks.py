"""Masks that look at what they hide: p(K | x) with the conditional that matches it, from blind to telling too much."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.information import information
from besag.lab.pictures import dressed, style
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import Pairwise, Parameters, ising

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: tuple[Parameters, ...] = ("couplings", "both")
SAID = {"couplings": "couplings", "both": "couplings and fields"}
SIZE = 2


@register
@dataclass(frozen=True)
class LookingMasks(Experiment):
    name: ClassVar[str] = "looking_masks"
    title: ClassVar[str] = "masks that look at what they hide, with the conditional that matches"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = (
        "to hide neighbours that agree more often helps to learn what the slow mode carries, if done with measure: "
        "a mask that looks too closely gives away what it hides"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    def measure(self, full: bool) -> Finding:
        tilts = np.linspace(-2, 4, 25 if full else 13)
        couplings = (0.3, 1.0, 2.0)
        values = np.array([[[information(spins, looking(spins, float(tilt))).inflation() for tilt in tilts]
                            for spins in (ising(chain(4), one, 0.0, kind) for one in couplings)]
                           for kind in KINDS])  # (kinds, J, tilts)  # fmt: skip
        blind = values[:, :, np.flatnonzero(tilts == 0)[0]]
        rows: list[dict[str, Any]] = [
            {"θ": SAID[kind], "J": coupling, "blind": float(blind[of, at]),
             "best tilt": float(tilts[values[of, at].argmin()]), "at the best tilt": float(values[of, at].min()),
             "tilt 4": float(values[of, at, -1])}
            for of, kind in enumerate(KINDS) for at, coupling in enumerate(couplings)
        ]  # fmt: skip
        return Finding(
            shown=(
                f"With fields to be learnt at J = 2, hiding agreeing pairs more often needs {values[1, 2].min():.1f} "
                f"sequences in place of {blind[1, 2]:.1f}; for couplings alone a blind mask is best, and a mask that "
                "looks too closely is worse for both."
            ),
            claims={
                "fields at J = 2: some tilt towards agreeing pairs saves a tenth of the sequences": bool(
                    values[1, 2, tilts > 0].min() < 0.9 * blind[1, 2]
                ),
                "couplings alone: no tilt saves a tenth": bool((values[0].min(1) > 0.9 * blind[0]).all()),
                "a tilt of 4 is worse than none, everywhere": bool((values[:, :, -1] > blind).all()),
            },
            tables={"4 spins on a chain, two hidden, block loss: tr(IΓ)/d": rows},
            arrays={"tilt": tilts, "coupling": np.array(couplings), "inflation": values},
            figures={"tilt": Drawing(
                "Sequences needed for each of maximum likelihood, against how strongly p(K | x) ∝ exp(tilt · agreement "
                "in K) prefers pairs of neighbours that agree. Strong colours: couplings and fields; "
                "faint: couplings alone.",
                lambda ax: _draw(ax, tilts, couplings, values),
            )},
            notes=("the loss is −log p(x_K | x_−K, K): what a mask tells by being where it is counts as shown",),
        )  # fmt: skip


def looking(spins: Pairwise, tilt: float) -> dict[tuple[int, ...], Floats]:
    """p(K | x) ∝ exp(tilt · Σ x_i x_j over the edges within K), over sets of two."""
    spin = 2.0 * spins.states - 1
    weight = {}
    for hidden in combinations(range(spins.places), SIZE):
        within = [
            spin[:, one] * spin[:, other] for one, other in combinations(hidden, 2) if (one, other) in spins.graph.edges
        ]
        weight[hidden] = np.exp(tilt * sum(within, np.zeros(spins.size))).reshape(spins.shape)
    total = sum(weight.values(), np.zeros(spins.shape))
    return {hidden: np.asarray(one / total) for hidden, one in weight.items()}


def _draw(ax: Axes, tilts: Floats, couplings: tuple[float, ...], values: Floats) -> None:
    for at, coupling in enumerate(couplings):
        ax.plot(tilts, values[1, at], label=f"J = {coupling:g}", markersize=4, **style(at))
        ax.plot(tilts, values[0, at], alpha=0.35, markersize=4, **style(at))
    ax.axvline(0, color="0.4", linewidth=1)
    dressed(ax, "tilt towards pairs that agree (0: blind)", "tr(IΓ)/d, sequences per one of ML", yscale="log")
