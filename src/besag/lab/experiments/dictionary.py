"""The dictionary as coupling grows: λ_max(IΓ)/C for couplings alone, and for couplings with fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from besag.checks import whole_number
from besag.lab.dictionary import dictionary
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.masks import uniform_masks
from besag.lab.pictures import curves
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising


@register
@dataclass(frozen=True)
class DictionaryRatio(Experiment):
    name: ClassVar[str] = "dictionary"
    title: ClassVar[str] = "a sampler that mixes fast belongs to a loss that learns well"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = "Γ ⪯ C·I⁻¹: the block loss needs at most C times the sequences of maximum likelihood"
    cite: ClassVar[tuple[str, ...]] = ("li2024",)
    headline: ClassVar[bool] = True

    places: Annotated[int, "spins on a chain"] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.places, "places", least=2, most=8)

    def measure(self, full: bool) -> Finding:
        couplings = np.linspace(0, 2, 21 if full else 11)
        places = self.places + (2 if full else 0)
        laws = {f"k = {size}": uniform_masks(places, size) for size in (1, 2)}
        rows: list[dict[str, Any]] = []
        for coupling in couplings:
            for parameters in ("couplings", "both"):
                found = dictionary(ising(chain(places), float(coupling), parameters=parameters), laws)
                rows += [{"J": float(coupling), "parameters": parameters, **entry._asdict()} for entry in found.entries]
        ratio = {
            (parameters, law): np.array([row["ratio"] for row in rows
                                         if (row["parameters"], row["masks"]) == (parameters, law)])
            for parameters in ("couplings", "both") for law in laws
        }  # fmt: skip
        return Finding(
            shown=(
                "C times the sequences of maximum likelihood are always enough. The bound is loose where no score sees "
                "the sampler's slow function, which is odd, and tight once fields, whose scores are odd, are learnt."
            ),
            claims={
                "Γ ⪯ C·I⁻¹ for every coupling, law of masks and set of parameters": all(
                    row["ratio"] <= 1 + 1e-9 for row in rows
                ),
                "couplings alone see nothing of the slow function (R² < 10⁻⁹, J > 0)": all(
                    row["seen"] < 1e-9 for row in rows if row["parameters"] == "couplings" and row["J"] > 0
                ),
                "couplings alone: the ratio is below ⅕ from J = 1 on": all(
                    bool((ratio["couplings", law][couplings >= 1] < 0.2).all()) for law in laws
                ),
                "with fields: the ratio is above 0.98 for every coupling": bool(
                    min(ratio["both", law].min() for law in laws) > 0.98
                ),
            },
            tables={f"{places} spins on a chain": rows},
            notes=[
                "poincare is C; worst is λ_max(IΓ) and mean tr(IΓ)/d: sequences for each that maximum likelihood needs "
                "in the worst direction of parameters and in the mean; ratio is worst / C; seen is R², the share of "
                "the sampler's slow function that scores account for; passes are those of a step of the sampler",
            ],
            arrays={"coupling": couplings, **{f"{law}, {parameters}": one for (parameters, law), one in ratio.items()}},
            figures={"ratio": Drawing(
                f"How much of the bound is used: λ_max(IΓ)/C against the coupling of {places} spins on a chain. At 1 "
                "the loss is as bad as the sampler is slow.",
                lambda ax: curves(
                    ax, couplings,
                    {f"{law}, {'couplings and fields' if parameters == 'both' else 'couplings'}": one
                     for (parameters, law), one in ratio.items()},
                    "coupling J", "λ_max(IΓ) / C",
                ).set_ylim(0, 1.08),
            )},
        )  # fmt: skip
