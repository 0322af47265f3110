"""Variants of a protein with their effects: the result, and the verb that makes it.

Knows numbers, tables and pictures. Refuses to know how an effect is asked (`effects.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Floats
from besag.checks import checked
from besag.engine import Engine
from besag.errors import BesagError, quoted, require
from besag.joints.registry import Construction
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status, together
from besag.results.words import counted, dtype_name, number
from besag.variants.effects import effects, named
from besag.variants.mutations import RESIDUES, Variant, variants_of
from besag.variants.protein import Protein, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

SHOWN = 20  # variants in a table
MEANT = {
    "wt_marginals": "Σ log p(mutant) − log p(wild type), one pass with nothing hidden",
    "masked_marginals": "Σ log p(mutant) − log p(wild type), the mutated places hidden together",
    "masked_marginals_alone": "Σ log p(mutant) − log p(wild type), each mutated place hidden alone",
    "pseudo_ppl": "PLL of the variant minus PLL of the wild type",
}


@dataclass(frozen=True, eq=False, repr=False)
class Variants(Presented):
    """Variants and their effects, in nats: below 0 where the model likes a variant less than the wild type."""

    wild_type: str
    offset: int
    variants: tuple[Variant, ...]
    effect: Floats  # (n,) nan where there is none
    epistasis: Floats  # (n,) log odds ratio of double mutants by a joint; nan otherwise
    statuses: tuple[Status, ...]
    method: str
    model: str
    dtype: str

    def __len__(self) -> int:
        return len(self.variants)

    @property
    def status(self) -> Status:
        return together(self.statuses)

    @property
    def unit(self) -> str:
        return "nats"

    @cached_property
    def additive(self) -> Floats:
        """(n,) what the mutations would do if each did what it does alone: effect − epistasis."""
        return np.asarray(self.effect - self.epistasis)

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        unscored = sum(not np.isfinite(one) for one in self.effect)
        doubles = int(np.isfinite(self.epistasis).sum())
        meant = MEANT.get(self.method, f"log q(variant) − log q(wild type), q the joint of its places by {self.method}")
        return [
            *([f"{counted(unscored, 'VARIANT').upper()} WITHOUT A NUMBER"] if unscored else []),
            f"{meant}, in nats: below 0, the model likes the wild type better",
            *(
                [f"epistasis of {counted(doubles, 'double mutant')}: effect minus both single effects"]
                if doubles
                else []
            ),
            f"{counted(len(self), 'variant')} of {counted(len(self.wild_type), 'residue')}",
            self.model,
            self.dtype,
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("wild_type", "offset", "method", "unit", "model", "dtype")
        whole = {**self._answers(), **{name: getattr(self, name) for name in names}, "variants": self._rows()}
        return dict(json_ready(whole))

    def to_pandas(self) -> DataFrame:
        """One row a variant; `frame.attrs` says what the numbers are."""
        return data.frame(self, self._rows(), ("variant", "effect", "additive", "epistasis", "status"))

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """The strongest epistasis of every two places, where a joint gives it; otherwise the single effects."""
        pyplot = require("matplotlib.pyplot", extra="plot")
        doubles = np.flatnonzero(np.isfinite(self.epistasis))
        single = [at for at, one in enumerate(self.variants) if len(one.places) == 1 and np.isfinite(self.effect[at])]
        if not len(doubles) and not single:
            raise BesagError("there is nothing to draw: no single mutant has an effect and no double one an epistasis")
        chosen = doubles.tolist() if len(doubles) else single
        places = sorted({place for at in chosen for place in self.variants[at].places})
        names = [f"{self.wild_type[place]}{place + 1 + self.offset}" for place in places]
        if ax is None:
            height = len(places) if len(doubles) else len(RESIDUES)
            ax = pyplot.subplots(figsize=(max(4, 0.35 * len(places)), max(3, 0.3 * height)), layout="constrained")[1]
        table = self._pairs(chosen, places) if len(doubles) else self._singles(chosen, places)
        most = max(float(np.nanmax(np.abs(table), initial=0.0)), 1e-9)
        image = ax.imshow(table, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
        ax.set_xticks(range(len(places)), names, rotation=90)
        ax.set_yticks(range(len(table)), names if len(doubles) else list(RESIDUES))
        label = "strongest epistasis" if len(doubles) else "effect"
        ax.figure.colorbar(image, ax=ax, label=f"{label} (nats)")
        return ax

    def _pairs(self, chosen: Sequence[int], places: Sequence[int]) -> Floats:
        """(places, places) of all variants there the epistasis farthest from 0."""
        table = np.full((len(places), len(places)), np.nan)
        for at in chosen:
            i, j = (places.index(place) for place in self.variants[at].places)
            if not abs(table[i, j]) >= abs(self.epistasis[at]):  # nan is not
                table[i, j] = table[j, i] = self.epistasis[at]
        return table

    def _singles(self, chosen: Sequence[int], places: Sequence[int]) -> Floats:
        """(20, places)"""
        table = np.full((len(RESIDUES), len(places)), np.nan)
        for at in chosen:
            one = self.variants[at]
            table[RESIDUES.index(one.mutant), places.index(one.places[0])] = self.effect[at]
        return table

    def _rows(self) -> list[dict[str, Any]]:
        columns = zip(self.variants, self.effect, self.additive, self.epistasis, self.statuses, strict=True)
        names = ("variant", "effect", "additive", "epistasis", "status")
        return [dict(zip(names, (one.name, *map(float, numbers), str(status)), strict=True))
                for one, *numbers, status in columns]  # fmt: skip

    def _title(self) -> list[str]:
        return [quoted(self.wild_type)]

    def _grids(self) -> list[Grid]:
        joint = bool(np.isfinite(self.epistasis).any())
        head = ("variant", "effect", *(("single effects", "epistasis") if joint else ()))
        rows = []
        for row in self._rows()[:SHOWN]:
            numbers = [row["effect"], *((row["additive"], row["epistasis"]) if joint else ())]
            rows.append(Line([row["variant"], *(number(one) if np.isfinite(one) else "–" for one in numbers)]))
        left = len(self) - SHOWN
        return [Grid(head, rows, left=(0,), note=f"… and {left:,} more" if left > 0 else "")]


@checked
def variants(
    engine: Engine,
    wild_type: str,
    mutations: Sequence[str],
    method: str = "masked_marginals",
    *,
    offset: int = 0,
    **options: Any,
) -> Variants:
    """The effect of each variant on a protein, by one of the formulas or a construction of joints."""
    if not mutations:
        raise BesagError("there are no variants to score: give a list of them, as in ['A23G', 'A23G:C45D']")
    how = named(method, **options)
    sequence = plain(wild_type)
    asked = variants_of(sequence, mutations, offset)
    protein = Protein.of(engine.conditionals, sequence)
    found = effects(engine, protein, asked, how)
    return Variants(
        wild_type=sequence,
        offset=offset,
        variants=tuple(asked),
        effect=np.array([one.effect for one in found]),
        epistasis=np.array([one.epistasis for one in found]),
        statuses=tuple(one.status for one in found),
        method=how.label if isinstance(how, Construction) else how,
        model=engine.conditionals.name,
        dtype=dtype_name(engine.conditionals.dtype),
    )
