"""The stutter toy: two sentences that differ by a shift, each place right by itself and the whole wrong.

Half of the mass on "was walking along", half on "was quietly walking". One parallel pass says "was walking walking" and
"was quietly along" as often as either. Gibbs with one place at a time never gets from one sentence to the other, but
through sentences that nobody says: of those a share ε is let in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Floats
from besag.lab.chains import blocks, gibbs, mixing_time, nearest_product, spectrum, total_correlation
from besag.lab.chains.products import marginals, outer
from besag.lab.experiment import Drawing, Experiment, Finding, register
from besag.lab.pictures import COLOURS, curves, dressed

WORDS = ("was", "quietly", "walking", "along")
SAID = {"was walking along": (0, 2, 3), "was quietly walking": (0, 1, 2), "was walking walking": (0, 2, 2),
        "was quietly along": (0, 1, 3)}  # fmt: skip
RIGHT = 2  # of them


@register
@dataclass(frozen=True)
class Stutter(Experiment):
    name: ClassVar[str] = "stutter"
    title: ClassVar[str] = "walking walking: every place right, the sentence wrong"
    simulated: ClassVar[bool] = False
    claim: ClassVar[str] = (
        "a parallel pass over two sentences that differ by a shift stutters a quarter of the time; single places do "
        "not get from one to the other, two places together do at once"
    )
    cite: ClassVar[tuple[str, ...]] = ("li2024",)

    def measure(self, full: bool) -> Finding:
        law = toy()
        product = outer(marginals(law))
        near, factors = nearest_product(law, seed=self.seed)
        nearest = outer(factors)
        rows = [
            {"sentence": said, "law": float(law[at]), "one pass: marginals": float(product[at]),
             "one pass: nearest in TV": float(nearest[at])}
            for said, at in SAID.items()
        ]  # fmt: skip
        shares = np.geomspace(1e-1, 1e-5, 9 if full else 5)
        slow = []
        for share in shares:
            loose = (1 - share) * law + share / law.size
            single, pair = gibbs(loose), blocks(loose, 2)
            slow.append({
                "ε": float(share), "C, one place": spectrum(single).poincare, "t(¼), one place": mixing_time(single),
                "C, two places": spectrum(pair).poincare, "t(¼), two places": mixing_time(pair),
            })  # fmt: skip
        alone, both = (np.array([row[name] for row in slow]) for name in ("C, one place", "C, two places"))
        said = product[tuple(zip(*SAID.values(), strict=True))]
        return Finding(
            shown=(
                "One pass says each of four sentences a quarter of the time, two of them never heard; it loses log 2. "
                "Single-site Gibbs needs steps in proportion to 1/ε, pairs a handful whatever ε is."
            ),
            claims={
                "one pass: ¼ on each of the four sentences": bool(np.abs(said - 0.25).max() < 1e-12),
                "what it loses is log 2 nats": abs(total_correlation(law) - np.log(2)) < 1e-12,
                "the nearest product that was found is √2 − 1 away in total variation": bool(
                    abs(near - np.sqrt(2) + 1) < 1e-4
                ),
                "one place at a time: C grows at least ninefold with each tenth of ε": bool(
                    (alone[1:] / alone[:-1] > 9 ** (4 / (len(shares) - 1))).all()
                ),
                "two places at a time: C stays below 4": bool(both.max() < 4),
            },
            tables={"what is said": rows, "Gibbs, with a share ε of uniform noise": slow},
            arrays={"law": law, "noise": shares, "poincare_one": alone, "poincare_two": both},
            figures={
                "what is said": Drawing(
                    "Probability of four sentences: under the law, and when one pass draws each place by itself.",
                    lambda ax: _bars(ax, rows), (6.4, 2.8),
                ),
                "how slow": Drawing(
                    "Steps to forget (Poincaré constant) against the share ε of sentences that nobody says.",
                    lambda ax: curves(ax, shares, {"one place at a time": alone, "two places at a time": both},
                                      "ε, share of noise", "C (steps)", xscale="log", yscale="log"),
                ),
            },
        )  # fmt: skip


def toy() -> Floats:
    """(4, 4, 4) the two sentences."""
    law = np.zeros((len(WORDS),) * 3)
    for at in list(SAID.values())[:RIGHT]:
        law[at] = 1 / RIGHT
    return law


def _bars(ax: Any, rows: list[dict[str, Any]]) -> None:
    at = np.arange(len(rows))
    ax.barh(at - 0.2, [row["law"] for row in rows], 0.38, color=COLOURS[0], label="the law")
    ax.barh(at + 0.2, [row["one pass: marginals"] for row in rows], 0.38, color=COLOURS[1], hatch="//",
            edgecolor="white", label="one parallel pass")  # fmt: skip
    dressed(ax, "probability", "")
    ax.set_yticks(at, [row["sentence"] for row in rows])
    ax.invert_yaxis()
