"""The dictionary between training and mixing: one law of masks weighs a loss and drives a sampler.

    Γ ⪯ C · I⁻¹        Γ the asymptotic covariance of the block loss, C the Poincaré constant of the block dynamics,
                       I Fisher's information

Why: ∇_θ log p_θ(x_K | x_−K) = s − E[s | x_−K], so the information of the loss is E_K E Var(s | x_−K), the Dirichlet
form of the sampler at the score s. Poincaré's inequality for f = ⟨w, s⟩ is the statement. A sampler that mixes fast
therefore belongs to a loss that learns well; not the other way round. The ratio λ_max(IΓ)/C is 1 where the slowest
function of the sampler is a combination of scores, and falls as the scores miss it: of spins without fields the slow
function is odd and scores of couplings are even.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.checks import checked
from besag.errors import require
from besag.lab.chains.kernels import Blocks
from besag.lab.chains.spectrum import spectrum
from besag.lab.finding import grid
from besag.lab.learning.information import information
from besag.lab.learning.masks import Masks, uniform_masks
from besag.lab.pictures import dressed, style
from besag.lab.systems.system import Family
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid
from besag.results.result import Presented
from besag.results.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

ROUNDING = 1e-7


class Entry(NamedTuple):
    """Both sides of one law of masks."""

    masks: str  # what it is called
    poincare: float  # C
    worst: float  # λ_max(IΓ): sequences for each that maximum likelihood needs, in the worst direction of θ
    mean: float  # tr(IΓ)/d
    ratio: float  # worst / C, at most 1
    seen: float  # the share of the slow function's variance that scores account for; nan where several are as slow
    passes: float  # of a sampler's step


@dataclass(frozen=True, eq=False, repr=False)
class Dictionary(Presented):
    """What `dictionary` gives: an entry for each law of masks."""

    system: str
    parameters: tuple[str, ...]
    entries: tuple[Entry, ...]

    @property
    def holds(self) -> bool:
        """Is Γ ⪯ C·I⁻¹ for every law of masks?"""
        return all(entry.ratio <= 1 + ROUNDING for entry in self.entries)

    @property
    def status(self) -> Status:
        return Status.OK if self.holds else Status.REFUTED

    @property
    def facts(self) -> list[str]:
        """Whether the order holds, and how tight it is."""
        tight = max(self.entries, key=lambda entry: entry.ratio)
        order = "Γ ⪯ C·I⁻¹ for every law of masks" if self.holds else "DOES NOT HOLD: not Γ ⪯ C·I⁻¹ everywhere"
        return [
            order,
            f"λ_max(IΓ)/C up to {tight.ratio:.3g}, {tight.masks}",
            f"{self.system}, parameters {', '.join(self.parameters)}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        return dict(json_ready({**self._answers(), **vars(self), "holds": self.holds}))

    def to_pandas(self) -> DataFrame:
        """One row a law of masks."""
        return data.frame(self, [entry._asdict() for entry in self.entries], system=self.system)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """λ_max(IΓ) against C; nothing lies above the line."""
        if ax is None:
            _, ax = require("matplotlib.pyplot", extra="plot").subplots(figsize=(6.4, 3.6), layout="constrained")
        for number, entry in enumerate(self.entries):
            ax.plot([entry.poincare], [entry.worst], label=entry.masks, **{**style(number), "linestyle": "none"})
        ends = np.array([1.0, max(2.0, *(entry.poincare for entry in self.entries))])
        ax.plot(ends, ends, color="0.4", linewidth=1, label="λ_max(IΓ) = C")
        return dressed(
            ax, "C, Poincaré constant (steps)", "λ_max(IΓ) (sequences per one of ML)", xscale="log", yscale="log"
        )

    def _grids(self) -> list[Grid]:
        return [grid([entry._asdict() for entry in self.entries])]


@checked
def dictionary(family: Family, masks: Mapping[str, Masks] | None = None) -> Dictionary:
    """Both sides together: what each law of masks learns, and how fast the sampler that it drives mixes.

    Args:
        family: a law with its scores, such as `ising(chain(4), 0.3)`.
        masks: laws of masks by name; uniform sets of k = 1 … N places if left out.

    Returns:
        An entry for each, and whether Γ ⪯ C·I⁻¹.

    Examples:
        >>> from besag.lab import chain, ising
        >>> from besag.lab.dictionary import dictionary
        >>> found = dictionary(ising(chain(4), 0.3))
        >>> [round(entry.poincare, 2) for entry in found.entries]
        [7.2, 2.98, 1.64, 1.0]
        >>> found.holds
        True
    """
    laws = masks or {f"k = {size}": uniform_masks(family.places, size) for size in range(1, family.places + 1)}
    return Dictionary(family.name, family.parameters, tuple(_entry(family, name, law) for name, law in laws.items()))


def _entry(family: Family, name: str, masks: Masks) -> Entry:
    sampler = Blocks(family.law, masks, name)
    found, learned = spectrum(sampler), information(family, masks, "block")
    root = np.linalg.cholesky(learned.fisher)
    values = np.linalg.eigvalsh(root.T @ learned.covariance() @ root)
    worst = float(values[-1])
    alone = len(found.values) < 3 or bool(found.values[1] - found.values[2] > ROUNDING)
    seen = _seen(family, found.slow) if alone else np.nan
    return Entry(name, found.poincare, worst, float(values.mean()), worst / found.poincare, seen, sampler.passes)


def _seen(family: Family, mode: Floats) -> float:
    """R² of a function on the scores, under the law."""
    weighed = family.law.reshape(-1, 1) * family.scores
    shared = weighed.T @ mode  # (d,)
    share = float(shared @ np.linalg.solve(family.information, shared) / (family.law.ravel() @ mode**2))
    return share if share > ROUNDING else 0.0
