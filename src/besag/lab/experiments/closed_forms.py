"""Gaps beside closed forms: what is computed here equals what is known by hand."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.chains import all_sites, blocks, gibbs, spectrum
from besag.lab.chains.transition import Dense
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.pictures import dressed, style
from besag.lab.systems.graphs import clique, cycle
from besag.lab.systems.pairwise import ising
from besag.lab.systems.system import all_states


@register
@dataclass(frozen=True)
class ClosedForms(Experiment):
    name: ClassVar[str] = "closed_forms"
    title: ClassVar[str] = "gaps and laws beside closed forms"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = (
        "gaps of two states, products and the complete graph, and the law of all spins at once, are as known"
    )
    cite: ClassVar[tuple[str, ...]] = ("levin2017",)

    def measure(self, full: bool) -> Finding:
        places = 12 if full else 9
        couplings = np.linspace(0.02, 0.4, 20)
        few = np.linspace(0.02, 0.4, 8)
        rows: list[dict[str, Any]] = [*_two_states(), *self._products()]
        found = np.array([spectrum(gibbs(ising(clique(places), float(one)))).gap for one in few])
        known = np.array([magnetisation_gap(places, float(one)) for one in couplings])
        for coupling, gap in zip(few, found, strict=True):
            rows.append({"chain": f"heat bath on the complete graph of {places}, J = {coupling:.3g}", "computed": gap,
                         "known": magnetisation_gap(places, float(coupling))})  # fmt: skip
        apart = self._all_at_once(100 if full else 20)
        error = max(abs(row["computed"] / row["known"] - 1) for row in rows)
        return Finding(
            shown=(
                f"Gaps agree with closed forms to {error:.0e}; all spins drawn at once keep Π e^(h_i x_i) "
                f"cosh(h_i + Σ_j J_ij x_j), to {apart:.0e} in total variation, and not the Ising law."
            ),
            claims={"gaps agree to 10⁻⁷ of their size": error < 1e-7,
                    "the law of all spins at once agrees to 10⁻⁹": apart < 1e-9},
            tables={"gaps": rows},
            arrays={"coupling": couplings, "known": known, "few": few, "computed": found},
            figures={"complete graph": Drawing(
                f"Gap of single-site heat bath on the complete graph of {places} spins: the line is the chain of the "
                f"magnetisation ({places + 1} states), marks all {2**places:,} states.",
                lambda ax: _draw(ax, couplings, known, few, found, places),
            )},
        )  # fmt: skip

    def _products(self) -> list[dict[str, Any]]:
        generator = np.random.default_rng(self.seed)
        law = np.ones(1)
        for width in (2, 3, 2, 2):
            law = np.multiply.outer(law, generator.dirichlet(np.ones(width)))
        return [{"chain": f"product of four places, blocks of {k}", "computed": spectrum(blocks(law[0], k)).gap,
                 "known": k / 4} for k in range(1, 5)]  # fmt: skip

    def _all_at_once(self, systems: int) -> float:
        generator, worst = np.random.default_rng(self.seed), 0.0
        x = 2.0 * all_states((2,) * 6) - 1
        for _ in range(systems):
            family = ising(cycle(6), generator.normal(size=6).tolist(), generator.normal(size=6).tolist())
            couplings, fields = family.conditionals().couplings.numpy(), family.fields[:, 0]  # type: ignore[attr-defined]
            known = np.exp(x @ fields) * np.cosh(fields + x @ couplings).prod(1)
            worst = max(worst, float(0.5 * np.abs(all_sites(family).law - known / known.sum()).sum()))
        return worst


def _two_states() -> list[dict[str, Any]]:
    rows = []
    for there, back in ((0.3, 0.1), (0.9, 0.8), (0.001, 0.002)):
        law = np.array([back, there]) / (there + back)
        matrix = np.array([[1 - there, there], [back, 1 - back]])
        found = spectrum(Dense(matrix, law, "two states", law=law, reversible=True)).gap
        rows.append({"chain": f"two states, {there:g} there and {back:g} back", "computed": found,
                     "known": there + back})  # fmt: skip
    return rows


def magnetisation_gap(places: int, coupling: float) -> float:
    """Of the number of plus spins under heat bath on the complete graph: birth and death on 0 … n."""
    up = np.arange(places + 1)
    sums = 2 * up - places
    rise = (places - up) / places / (1 + np.exp(-2 * coupling * (sums + 1)))  # a minus spin sees the sum without it
    fall = up / places / (1 + np.exp(2 * coupling * (sums - 1)))
    matrix = np.diag(1 - rise - fall) + np.diag(rise[:-1], 1) + np.diag(fall[1:], -1)
    weights = np.array([comb(places, one) for one in up]) * np.exp(coupling * (sums**2 - places) / 2)
    law = weights / weights.sum()
    return spectrum(Dense(matrix, law, "magnetisation", law=law, reversible=True)).gap


def _draw(ax: Any, couplings: Floats, known: Floats, few: Floats, found: Floats, places: int) -> None:
    ax.plot(couplings, known, color=style(0)["color"], label=f"magnetisation, {places + 1} states")
    ax.plot(few, found, **{**style(1), "linestyle": "none"}, label=f"all {2**places:,} states")
    dressed(ax, "coupling J", "spectral gap (1/steps)", yscale="log")
