"""Entropy tensorisation from both sides: what a search finds, and the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.lab.chains import tensorisation
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.pictures import curves
from besag.lab.systems.graphs import chain
from besag.lab.systems.pairwise import ising

FIELDS = [0.3, 1.0, -2.0, 0.1]


@register
@dataclass(frozen=True)
class Entropy(Experiment):
    name: ClassVar[str] = "entropy"
    title: ClassVar[str] = "the constant of the finite-sample bound, from below and above"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = "C_P ≤ C_AT ≤ C_P · log(1/π* − 1)/(1 − 2π*), and N/k on product measures"
    cite: ClassVar[tuple[str, ...]] = ("li2024", "diaconis1996")

    def measure(self, full: bool) -> Finding:
        couplings = np.linspace(0, 1.2, 13 if full else 7)
        rows: list[dict[str, Any]] = []
        for kind, fields in (("without fields", [0.0] * 4), ("with fields", FIELDS)):
            for coupling in couplings:
                found = tensorisation(ising(chain(4), float(coupling), fields), 1, 16 if full else 4, self.seed)
                rows.append({"fields": kind, "J": float(coupling), "C_P": found.poincare, "found": found.lower,
                             "bound": found.upper, "found / C_P": found.lower / found.poincare})  # fmt: skip
        product = [
            {"k": k, "found": one.lower, "bound": one.upper, "N/k": 4 / k}
            for k in range(1, 5) for one in [tensorisation(ising(chain(4), 0.0, FIELDS), k)]
        ]  # fmt: skip
        some = [row for row in rows if row["fields"] == "with fields"]
        named = {name: np.array([row[key] for row in some]) for name, key in
                 (("C_P, Poincaré", "C_P"), ("C_AT, found by search", "found"), ("C_AT, bound", "bound"))}  # fmt: skip
        return Finding(
            shown=(
                "Entropy is seen by single places nearly as well as variance: a search finds at most a tenth more than "
                "C_P here, far below the bound; without fields it finds nothing beyond C_P."
            ),
            claims={
                "what is found lies between C_P and the bound": all(
                    row["C_P"] <= row["found"] * (1 + 1e-9) <= row["bound"] * (1 + 1e-6) for row in rows
                ),
                "with fields some density beats C_P": any(row["found / C_P"] > 1.01 for row in some),
                "on a product measure both ends are N/k": all(
                    abs(row["found"] - row["N/k"]) < 1e-9 and abs(row["bound"] - row["N/k"]) < 1e-9 for row in product
                ),
            },
            tables={"4 spins on a chain, single places": rows, "a product measure, sets of k": product},
            arrays={"coupling": couplings, **named},
            figures={"both sides": Drawing(
                "The constant of entropy tensorisation of 4 spins on a chain with fields, single places: between what "
                "a search finds and the bound.",
                lambda ax: curves(ax, couplings, named, "coupling J", "constant (steps)", yscale="log"),
            )},
            notes=(
                "C_P and C_AT are the least constants with Var(f) ≤ C_P Σ_K p_K E Var(f | x_−K), and the same of the "
                "entropy of every density f; π* is the least probability of a state",
            ),
        )  # fmt: skip
