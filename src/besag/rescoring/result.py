"""What rescoring found: each system beside the first pass and the oracle, with intervals, tests and the curve.

A system is a language model (or several together) with its weights. Knows choices and their statistics; refuses to know
where scores come from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import checked
from besag.errors import BesagError, nearest, require
from besag.rescoring.lists import NBest
from besag.rescoring.metrics import Metric
from besag.rescoring.ranking import Board
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

Per = Literal["system", "utterance", "weight"]
FEW = 50  # utterances, below which a mean of differences is hardly normal
PER: tuple[Per, ...] = ("system", "utterance", "weight")


@dataclass(frozen=True)
class System:
    """One way to rank: whose scores are added, how strongly, and what came of it."""

    name: str
    weights: Floats  # (F, K) λ of each scorer in each fold; 0 for those it leaves out
    chosen: Ints  # (U,)
    used: tuple[int, ...] = ()  # whose weights are its own
    value: float = math.nan  # of the metric
    low: float = math.nan  # of its difference from the first pass: 95 % of the paired bootstrap
    high: float = math.nan
    z: float = math.nan  # of the matched pairs; only of errors
    p: float = math.nan  # of the matched pairs, or of the bootstrap where the metric counts no errors
    p_bootstrap: float = math.nan
    p_holm: float = math.nan  # p, corrected for the number of systems


class Curve(NamedTuple):
    weights: Floats  # (W,)
    values: Mapping[str, Floats]  # name of a scorer → (W,) the metric of all utterances, one weight for all


@dataclass(frozen=True, eq=False, repr=False)
class Rescoring(Presented):
    """Systems beside each other; `reranked()` gives the lists in their new order."""

    lists: tuple[NBest, ...]
    board: Board
    metric: Metric | None  # None without references
    first: System
    oracle: System | None
    systems: tuple[System, ...]
    curve: Curve | None
    fold: Ints  # (U,) in which fold an utterance is
    unscored: Mapping[str, int]  # scorer → utterances that it left as they were, a hypothesis having no score
    about: tuple[str, ...]  # how it was done, in words

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def best(self) -> System:
        """The system with the best value; without references, the last."""
        if self.metric is None:
            return self.systems[-1]
        return min(self.systems, key=lambda one: -one.value if self.metric.higher else one.value)  # type: ignore[union-attr]

    @checked
    def reranked(self, system: str | None = None) -> list[NBest]:
        """The lists ranked by a system (if there is one only, that), each hypothesis with its new score."""
        one = self._named(system)
        by_fold = [self.board.combined(weights) for weights in one.weights]
        ranked = []
        for place, (given, fold) in enumerate(zip(self.lists, self.fold.tolist(), strict=True)):
            combined = by_fold[fold][place, : len(given.hypotheses)]
            order = np.argsort(-combined, kind="stable")
            new = (replace(given.hypotheses[at], score=float(combined[at])) for at in order)
            ranked.append(replace(given, hypotheses=tuple(new)))
        return ranked

    def _named(self, system: str | None) -> System:
        names = [one.name for one in self.systems]
        if system is None and len(names) > 1:
            raise BesagError(f"there are several rankings, {', '.join(names)}: say which")
        if system is not None and system not in names:
            raise BesagError(f"system={system!r}: one of {', '.join(names)}.{nearest(system, names)}")
        return self.systems[0 if system is None else names.index(system)]

    # ---- out of here

    @checked
    def table(self, per: Per = "system") -> list[dict[str, Any]]:
        """One row for each system (first pass and oracle beside them), for each utterance, or for each weight."""
        if per not in PER:
            raise BesagError(f"per={per!r}: one of {', '.join(PER)}.{nearest(per, PER)}")
        if per == "utterance":
            return [self._utterance(place) for place in range(len(self))]
        if per == "weight":
            return [] if self.curve is None else [
                {"weight": weight, **{name: values[at] for name, values in self.curve.values.items()}}
                for at, weight in enumerate(self.curve.weights.tolist())
            ]  # fmt: skip
        return [self._system(one) for one in (self.first, *self.systems, *([self.oracle] if self.oracle else []))]

    def _system(self, one: System) -> dict[str, Any]:
        value, first = one.value, self.first.value
        named = self.metric.name if self.metric else "value"
        return {
            "system": one.name,
            "weight": ", ".join(" + ".join(f"{weight:.6g}" for weight in fold) for fold in one.weights[:, one.used]),
            named: value,
            "relative": 100 * (value - first) / first if first else math.nan,
            "changed": int((one.chosen != self.first.chosen).sum()),
            "low": one.low, "high": one.high, "z": one.z, "p": one.p, "p_bootstrap": one.p_bootstrap,
            "p_holm": one.p_holm, "utterances": len(self),
        }  # fmt: skip

    def _utterance(self, place: int) -> dict[str, Any]:
        given = self.lists[place]
        row: dict[str, Any] = {"utt": given.utt, "fold": int(self.fold[place]), "ref": given.reference}
        for one in (self.first, *self.systems):
            at = int(one.chosen[place])
            row |= {one.name: given.hypotheses[at].text, f"{one.name}_rank": at + 1}
            if self.metric is not None and self.metric.errors:
                row[f"{one.name}_errors"] = int(self.board.of(one.chosen)[place, 0])
        return row

    def to_dict(self) -> dict[str, Any]:
        """Everything but the utterances (`table("utterance")`), for JSON."""
        return dict(json_ready({**self._answers(), "system": self.table(), "weight": self.table("weight")}))

    @checked
    def to_pandas(self, per: Per = "system") -> DataFrame:
        """`table(per)` as a frame."""
        return data.frame(self, self.table(per), per=per)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """The metric over the weight, for each scorer alone; lines at the first pass and at the oracle."""
        if self.curve is None or self.metric is None:
            raise BesagError("there is nothing to draw: without references no weight is better than another")
        pyplot = require("matplotlib.pyplot", extra="plot")
        if ax is None:
            _, ax = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
        for name, values in self.curve.values.items():
            ax.plot(self.curve.weights, values, label=name, linewidth=1.5)
        ax.axhline(self.first.value, color="0.4", linewidth=1, linestyle=":", label="first pass")
        if self.oracle is not None:
            ax.axhline(self.oracle.value, color="0.4", linewidth=1, linestyle="--", label="oracle")
        ax.set_xlabel("weight λ, the same for all utterances")
        ax.set_ylabel(f"{self.metric.name.upper()} (%)")
        ax.set_title(f"{len(self):,} utterances")
        ax.legend(framealpha=0.9, edgecolor="none", fontsize=8)
        return ax

    @property
    def status(self) -> Status:
        return Status.PARTLY if any(self.unscored.values()) else Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the figures, most important first."""
        left = [
            f"{counted(n, 'list')} not scored by {name} (a hypothesis has no score), left as the first pass had it"
            for name, n in self.unscored.items() if n
        ]  # fmt: skip
        return [*left, *self._judged(), *self.about]

    def _judged(self) -> list[str]:
        if self.metric is None:
            return ["not judged: there are no references"]
        test = "matched pairs" if self.metric.errors else "paired bootstrap"
        return [
            f"{self.metric.name.upper()} in per cent of {counted(len(self), 'utterance')}",
            f"p: {test} against the first pass, two-sided; Holm over {counted(len(self.systems), 'system')}",
            *(["few utterances: p is rough"] if len(self) < FEW else []),
            "low, high: 95 % of the difference by the paired bootstrap over utterances",
        ]

    def _grids(self) -> Sequence[Grid]:
        head = (
            "system",
            "weight",
            self.metric.name.upper() if self.metric else "value",
            "relative",
            "changed",
            "p Holm",
        )
        rows = [
            Line((row["system"], row["weight"], _shown(list(row.values())[2]), _shown(row["relative"], "%"),
                  f"{row['changed']:,}", _p(row["p_holm"])))
            for row in self.table()
        ]  # fmt: skip
        return [Grid(head, rows, left=(0, 1))]


def _shown(value: float, unit: str = "") -> str:
    return "–" if math.isnan(value) else f"{number(value)}{unit}"


def _p(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1e}" if value < 0.001 else f"{value:.3f}"
