"""Strong dependence slows both: the steps of a sampler, and the sequences of a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.checks import whole_number
from besag.lab.chains import blocks, mixing_time, spectrum
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.information import information
from besag.lab.learning.masks import uniform_masks
from besag.lab.pictures import dressed, style
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising

SIZES = (1, 2, 3)


@register
@dataclass(frozen=True)
class SlowBoth(Experiment):
    name: ClassVar[str] = "slow_both"
    title: ClassVar[str] = "strong dependence slows sampling and learning alike"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = "as places depend more on one another, blocks of any fixed size k < N mix and learn worse"
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    places: Annotated[int, "spins on a chain"] = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.places, "places", least=4, most=7)

    def measure(self, full: bool) -> Finding:
        couplings = np.linspace(0, 2, 17 if full else 9)
        rows: list[dict[str, Any]] = []
        for coupling in couplings:
            family = ising(chain(self.places + (2 if full else 0)), float(coupling), parameters="both")
            for size in SIZES:
                masks = uniform_masks(family.places, size)
                sampler, learned = blocks(family, masks), information(family, masks)
                rows.append({
                    "J": float(coupling), "k": size, "C, Poincaré (steps)": spectrum(sampler).poincare,
                    "t(¼), worst start (steps)": mixing_time(sampler),
                    "λ_max(IΓ)": learned.worst(), "tr(IΓ)/d": learned.inflation(),
                })  # fmt: skip
        numbers = ("C, Poincaré (steps)", "t(¼), worst start (steps)", "λ_max(IΓ)", "tr(IΓ)/d")
        found = {name: np.array([row[name] for row in rows]).reshape(len(couplings), len(SIZES)) for name in numbers}
        constant, worst = found["C, Poincaré (steps)"], found["λ_max(IΓ)"]
        return Finding(
            shown=(
                "Steps to mix and sequences to learn grow together, exponentially in the coupling; larger blocks put "
                "it off and do not avoid it."
            ),
            claims={
                **{f"{name} grows with the coupling, for every k": bool((np.diff(found[name], axis=0) >= 0).all())
                   for name in numbers[:3]},
                "larger blocks are never slower, nor learn worse": bool(
                    (np.diff(constant, axis=1) <= 1e-9).all() and (np.diff(worst, axis=1) <= 1e-9).all()
                ),
                "at J = 2 single sites are over 50 times as slow as at J = 0": bool(
                    constant[-1, 0] > 50 * constant[0, 0]
                ),
            },
            tables={f"{self.places + (2 if full else 0)} spins on a chain, couplings and fields as parameters": rows},
            arrays={"coupling": couplings, "k": np.array(SIZES), **found},
            figures={"both": Drawing(
                "Steps that the sampler needs (C) and sequences that the loss needs for each of maximum likelihood "
                "(λ_max(IΓ)), against the coupling. Marks lie on lines, since scores of fields see the slow mode.",
                lambda ax: _draw(ax, couplings, constant, worst),
            )},
        )  # fmt: skip


def _draw(ax: Any, couplings: Floats, constant: Floats, worst: Floats) -> None:
    for at, size in enumerate(SIZES):
        own = style(at)
        ax.plot(
            couplings, constant[:, at], color=own["color"], linestyle=own["linestyle"], label=f"sampler: C, k = {size}"
        )
        ax.plot(couplings, worst[:, at], color=own["color"], marker=own["marker"], linestyle="none",
                label=f"loss: λ_max(IΓ), k = {size}")  # fmt: skip
    dressed(ax, "coupling J", "steps, or sequences per one of ML", yscale="log")
