"""What a masked loss costs in sequences as dependence grows: every k, both losses, couplings alone and with fields."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from besag.arrays import Floats
from besag.checks import whole_number
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.information import information
from besag.lab.learning.masks import LOSSES, Loss, uniform_masks
from besag.lab.pictures import dressed, style
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: tuple[Literal["couplings", "both"], ...] = ("couplings", "both")


@register
@dataclass(frozen=True)
class EfficiencyCurves(Experiment):
    name: ClassVar[str] = "efficiency_curves"
    title: ClassVar[str] = "what masked losses cost in sequences as coupling grows"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = (
        "the stronger the dependence, the more sequences a loss of few hidden places needs, and most so for parameters "
        "that the slow mode of the sampler carries"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    places: Annotated[int, "spins of the chain, 3 to 8"] = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.places, "places", least=3, most=8)

    def measure(self, full: bool) -> Finding:
        couplings = np.linspace(0, 2, 41 if full else 11)
        sizes = range(1, self.places + 1)
        values = np.array([[[[self._inflation(coupling, kind, size, loss) for size in sizes] for loss in LOSSES]
                            for kind in KINDS] for coupling in couplings])  # (J, kind, loss, k)  # fmt: skip
        one_site = values[:, :, 0, 0]  # (J, kind)
        block = values[:, :, 0]
        best = 1 + np.argmin(values[:, :, 1], 2)  # (J, kind) the best k for tokens
        rows: list[dict[str, Any]] = [
            {"J": float(coupling), "θ": "couplings" if kind == "couplings" else "couplings and fields",
             "block k = 1": float(values[at, of, 0, 0]), "block k = N − 1": float(values[at, of, 0, -2]),
             "token, best k": int(best[at, of]), "token at its best k": float(values[at, of, 1].min())}
            for of, kind in enumerate(KINDS) for at, coupling in enumerate(couplings)
        ]  # fmt: skip
        claims = {
            "block: for every J and k, hiding more is no worse": bool((np.diff(block, axis=2) <= 1e-9).all()),
            "block, k = 1: the cost grows with J where fields are learnt too": bool(
                (np.diff(one_site[:, 1]) > 0).all()
            ),
            "with fields the cost at J = 2 is over five times that for couplings alone": bool(
                one_site[-1, 1] > 5 * one_site[-1, 0]
            ),
            "token: the best k is never all places": bool((best < self.places).all()),
        }
        return Finding(
            shown=(
                f"On {self.places} spins, single-site masking needs {one_site[-1, 0]:.1f} sequences for each of "
                f"maximum likelihood at J = 2 for couplings alone, and {one_site[-1, 1]:.0f} with fields, which the "
                "slow mode carries; hiding more buys most of that back, but not with all hidden in one pass."
            ),
            claims=claims,
            tables={f"{self.places} spins on a chain, one fresh mask a sequence: tr(IΓ)/d": rows},
            arrays={"coupling": couplings, "k": np.array(sizes), "inflation": values},
            figures={
                f"{loss} loss, θ = {'couplings' if kind == 'couplings' else 'couplings and fields'}": Drawing(
                    f"Sequences needed for each that maximum likelihood needs: {self.places} spins on a chain, "
                    f"{loss} loss, one fresh mask a sequence; "
                    f"{'couplings alone' if kind == 'couplings' else 'couplings and fields'} are learnt.",
                    self._drawing(couplings, values[:, of, which]),
                )
                for of, kind in enumerate(KINDS) for which, loss in enumerate(LOSSES)
            },
        )  # fmt: skip

    def _inflation(self, coupling: float, kind: Literal["couplings", "both"], size: int, loss: Loss) -> float:
        found = information(
            ising(chain(self.places), float(coupling), 0.0, kind), uniform_masks(self.places, size), loss
        )
        return math.inf if found.singular else found.inflation()

    def _drawing(self, couplings: Floats, values: Floats) -> Callable[[Axes], object]:
        def draw(ax: Axes) -> None:
            for size in range(1, self.places + 1):
                curve = np.where(np.isinf(values[:, size - 1]), np.nan, values[:, size - 1])
                if not np.isnan(curve).all():
                    ax.plot(couplings, curve, label=f"k = {size}", markersize=4, **style(size - 1))
            dressed(ax, "J, coupling", "tr(IΓ)/d, sequences per one of ML", yscale="log", legend="hidden places")

        return draw
