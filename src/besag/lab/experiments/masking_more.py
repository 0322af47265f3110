"""Masking more is better, and when it is not: information of k-masking, for the block loss and the token loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.learning.information import Information, information
from besag.lab.learning.masks import LOSSES, uniform_masks
from besag.lab.pictures import COLOURS, dressed
from besag.lab.seeds import streams
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising
from besag.lab.systems.random import random_family

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUPLINGS = (0.3, 1.0, 2.0)
SINGULAR = "k = 4, token: singular, no estimate"


@register
@dataclass(frozen=True)
class MaskingMore(Experiment):
    name: ClassVar[str] = "masking_more"
    title: ClassVar[str] = "masking more is better for the block loss, and not always for the token loss"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = (
        "for −log p(x_K | x_−K), hiding k + 1 places says at least as much of θ as hiding k: I_{k+1} ⪰ I_k; "
        "for −Σ log p(x_i | x_−K) it need not"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024", "besag1975")
    headline: ClassVar[bool] = True

    def measure(self, full: bool) -> Finding:
        rows, values = self._chain()
        systems = 1000 if full else 200
        least, worse = self._random(systems)
        claims = {
            "block: tr(IΓ)/d never rises with k on the 4-spin chain": bool(
                (np.diff(values[:, 0], axis=1) < 1e-9).all()
            ),
            "token: it rises from k = 2 to k = 3 at J = 0.3 and J = 1": bool(
                (values[:2, 1, 2] > values[:2, 1, 1]).all()
            ),
            "token: hiding all four places says nothing of the couplings": bool(np.isinf(values[:, 1, 3]).all()),
            f"block: I_(k+1) − I_k has no negative eigenvalue on {systems} random systems": bool(least > -1e-10),
        }
        return Finding(
            shown=(
                "Hiding more is never worse for the block loss; a network that answers for all hidden places in one "
                "pass does best in between, and learns nothing of couplings with everything hidden."
            ),
            claims=claims,
            tables={
                "4 spins on a chain, couplings as parameters, one fresh mask a sequence": rows,
                "random systems": [{
                    "systems": systems,
                    "least eigenvalue of I_(k+1) − I_k, of tr I": least,
                    "share on which the token loss is worse at some k + 1 than at k": worse,
                }],
            },
            arrays={"coupling": np.array(COUPLINGS), "k": np.arange(1, 5), "inflation": values},
            figures={"both losses": Drawing(
                "Sequences needed for each that maximum likelihood needs, against the number of hidden places: 4 spins "
                "on a chain. Solid: block loss; dashed: token loss, which has no estimate at k = 4.",
                lambda ax: self._draw(ax, values),
            )},
            notes=("with all masks of a sequence averaged (last columns) the differences all but vanish here",),
        )  # fmt: skip

    @staticmethod
    def _chain() -> tuple[list[dict[str, Any]], Floats]:
        rows, values = [], np.full((len(COUPLINGS), 2, 4), math.inf)
        for at, coupling in enumerate(COUPLINGS):
            spins = ising(chain(4), coupling)
            for size in range(1, 5):
                row: dict[str, Any] = {"J": coupling, "k": size}
                block, token = (information(spins, uniform_masks(4, size), loss) for loss in LOSSES)
                values[at, :, size - 1] = [_inflation(block), _inflation(token)]
                row["block: tr Γ"] = float(np.trace(block.covariance()))
                for name, one in (("block", block), ("token", token)):
                    row[f"{name}: tr(IΓ)/d"] = _told(_inflation(one))
                    row[f"{name}: λ_max(IΓ)"] = _told(math.inf if one.singular else one.worst())
                for name, one in (("block", block), ("token", token)):
                    row[f"{name}: all masks"] = _told(_inflation(one, math.inf))
                rows.append(row)
        return rows, values

    def _random(self, systems: int) -> tuple[float, float]:
        """The least eigenvalue of I_{k+1} − I_k, as a share of tr I; how often tokens do worse with more."""
        generator, least, worse = np.random.default_rng(self.seed), math.inf, 0
        for seed in streams(self.seed, systems):
            shape = generator.integers(2, 4, size=generator.integers(2, 5)).tolist()
            family = random_family(shape, 2, 2 * float(generator.random()), seed=seed)
            all_masks = [uniform_masks(len(shape), size) for size in range(1, len(shape) + 1)]
            blocks = [information(family, masks).hessian for masks in all_masks]
            smallest = [np.linalg.eigvalsh(more - less)[0] for less, more in pairwise(blocks)]
            least = min(least, float(min(smallest) / np.trace(blocks[-1])))
            tokens = [_inflation(information(family, masks, "token")) for masks in all_masks]
            worse += any(more > less * (1 + 1e-9) for less, more in pairwise(tokens))
        return least, worse / systems

    @staticmethod
    def _draw(ax: Axes, values: Floats) -> None:
        for at, coupling in enumerate(COUPLINGS):
            block, token = np.where(np.isinf(values[at]), np.nan, values[at])
            ax.plot(range(1, 5), block, color=COLOURS[at], marker="o", label=f"J = {coupling:g}, block")
            ax.plot(range(1, 5), token, color=COLOURS[at], marker="s", linestyle="--", label=f"J = {coupling:g}, token")
        dressed(ax, "k, places hidden of 4", "tr(IΓ)/d, sequences per one of ML")
        ax.text(4, 2.2, SINGULAR, ha="right", fontsize=9.5, color="0.3")
        ax.set_xticks(range(1, 5))


def _inflation(found: Information, masks: float = 1) -> float:
    return math.inf if found.singular else found.inflation(masks)


def _told(value: float) -> float | str:
    return "singular" if math.isinf(value) else value
