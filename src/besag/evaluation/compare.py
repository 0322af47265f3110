"""Two runs of the same benchmarks, item by item: is one better, by how much, and with what uncertainty?

Every metric of a benchmark is compared by its own recipe (`metrics.py`), on the items that both runs have numbers for
and that the metric uses in both. The p-value of the headline is shown as it is, the others corrected by Holm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from besag.checks import checked
from besag.errors import BesagError, quoted
from besag.evaluation.evaluation import Evaluation, Part
from besag.evaluation.metrics import HIGHER, LOWER, RESAMPLES, MetricDifference, compare_metrics
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status
from besag.statistics import holm

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.evaluation.suite import Row

SIZES = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"), (math.inf, "large"))  # Cohen's words
COLUMNS = (
    "group", "a", "b", "difference", "low", "high", "p", "p_holm", "effect", "n", "unit", "direction",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Presented):
    """What two runs of one suite differ in."""

    a: Part
    b: Part
    differences: tuple[MetricDifference, ...]
    shared: int  # items
    alone: int  # items that only one of the two has numbers for

    @property
    def verdict(self) -> str:
        """Of the headline, in words."""
        return f"{self.a.suite.name}: {_verdict(self.differences[0], self.a.label, self.b.label)}"

    def table(self) -> list[dict[str, Any]]:
        """A row for each metric."""
        return [
            {"suite": self.a.suite.name, "figure": one.name, **{name: getattr(one, name) for name in COLUMNS}}
            for one in self.differences
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        about = {"a": self.a.label, "b": self.b.label, "verdict": self.verdict, "differences": self.table()}
        return dict(json_ready({**self._answers(), **about}))

    def to_pandas(self) -> DataFrame:
        """`table()` as a frame."""
        return data.frame(self, self.table())

    @property
    def status(self) -> Status:
        return Status.PARTLY if self.alone else Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the differences, most important first."""
        alone = [f"{self.alone:,} items left out: only one of the two runs has numbers for them"] if self.alone else []
        return [self.verdict, *alone, f"A is {self.a.label}, B is {self.b.label}", f"{self.shared:,} items of both",
                f"paired bootstrap, {RESAMPLES:,} draws", "p but of the first by Holm"]  # fmt: skip

    def _grids(self) -> list[Grid]:
        lines = [Line((one.name, one.group or "all", f"{one.n:,}", *_numbers(one)), strong=one.significant)
                 for one in self.differences]  # fmt: skip
        return [Grid(("figure", "of", "n", "A", "B", "B − A", "95 %", "p", "d"), lines, left=(0, 1))]


@checked
def compare(a: Sequence[Evaluation], b: Sequence[Evaluation]) -> list[Compared]:
    """Each part of A with the part of B that is asked the same: one suite, the same method or model where need be."""
    return [_compared(one, other) for one, other in matched(a, b)]


def matched(a: Sequence[Evaluation], b: Sequence[Evaluation]) -> list[tuple[Part, Part]]:
    """Which parts of two runs belong together."""
    common = [one.suite.name for one in a if any(one.suite.name == other.suite.name for other in b)]
    if not common:
        told = " and ".join(", ".join(one.suite.name for one in run) for run in (a, b))
        raise BesagError(f"the two runs have no suite in common: they are of {told}")
    found = []
    for name in common:
        ours, theirs = ([part for one in run if one.suite.name == name for part in one.parts] for run in (a, b))
        if len(ours) == len(theirs) == 1:
            found.append((ours[0], theirs[0]))
            continue
        for keys in (("method",), ("model",), ("model", "method")):
            pairs = _by(keys, ours, theirs)
            if pairs:
                found += pairs
                break
        else:
            told = " and ".join(", ".join(part.label for part in run) for run in (ours, theirs))
            raise BesagError(f"which parts of {name!r} belong together is not plain: there are {told}")
    return found


def _by(keys: Sequence[str], ours: Sequence[Part], theirs: Sequence[Part]) -> list[tuple[Part, Part]]:
    """Those that agree in these; nothing where that leaves a choice."""
    named = [{tuple(getattr(part, key) for key in keys): part for part in run} for run in (ours, theirs)]
    if len(named[0]) < len(ours) or len(named[1]) < len(theirs):
        return []
    return [(part, named[1][key]) for key, part in named[0].items() if key in named[1]]


def _compared(a: Part, b: Part) -> Compared:
    rows = [{row["id"]: row for row in part.rows if row["status"] == "ok"} for part in (a, b)]
    ids = [name for name in rows[0] if name in rows[1]]
    if not ids:
        raise BesagError(f"{a.suite.name!r}: {a.label} and {b.label} have no item in common")
    ours, theirs = ([run[name] for name in ids] for run in rows)
    _check_groups(a.suite.name, ours, theirs)
    metrics = [
        {(one.name, one.group): one for one in part.suite.metrics(own)} for part, own in ((a, ours), (b, theirs))
    ]
    pairs = [(one, metrics[1][key]) for key, one in metrics[0].items() if key in metrics[1]]
    found = compare_metrics(pairs, ours, theirs)
    if not found:
        names = (", ".join(dict.fromkeys(name for name, _ in own)) for own in metrics)
        raise BesagError(
            f"{a.suite.name!r}: the two runs have no metric in common: A has {next(names)}; B {next(names)}"
        )
    corrected = [found[0].p, *holm([one.p for one in found[1:]])]  # the headline is the question that was asked
    unpaired = len(rows[0].keys() ^ rows[1].keys())
    shown = tuple(one._replace(p_holm=float(p)) for one, p in zip(found, corrected, strict=True))
    return Compared(a, b, shown, len(ids), unpaired)


def _check_groups(suite: str, ours: Sequence[Row], theirs: Sequence[Row]) -> None:
    """Reject runs on different data, in which equal ids are different items."""
    for one, other in zip(ours, theirs, strict=True):
        if one["group"] != other["group"]:
            raise BesagError(
                f"{suite!r}: item {quoted(one['id'])} belongs to {quoted(one['group'])} in A and to "
                f"{quoted(other['group'])} in B: the runs are of different data. Run both on the same files"
            )


# ---- in words


def _verdict(one: MetricDifference, a: str, b: str) -> str:
    if math.isnan(one.difference):
        return f"{one.name} is undefined in one of the runs, or no item of both has it: nothing to compare"
    unit = " points" if one.unit == "%" else f" {one.unit}" if one.unit else ""
    size = f"{abs(one.difference):.3g}{unit}"
    interval = "" if math.isnan(one.low) else f"95 %: {one.low:.3g} to {one.high:.3g}, "
    if math.isnan(one.p):
        return (
            f"B − A is {one.difference:+.3g}{unit} in {one.name}: too few items for an interval or a test, or infinite"
        )
    within = f" ({interval}p = {one.p_holm:.2g}{_effect(one)})"
    if not one.significant:
        return f"no difference is seen in {one.name}: B − A is {one.difference:+.3g}{unit}{within}"
    higher, lower = (b, a) if one.difference > 0 else (a, b)
    if one.direction in (HIGHER, LOWER):
        best = higher if one.direction == HIGHER else lower
        return f"{best} is better in {one.name}, by {size}{within}"
    told = f"{one.name} of {higher} is {size} higher than that of {lower}{within}"
    ideal = next(_ideals(one.direction), math.nan)
    nearer = a if abs(one.a - ideal) < abs(one.b - ideal) else b
    return told if math.isnan(ideal) else f"{told}; {one.direction}, and {nearer} is nearer"


def _ideals(direction: str) -> Iterator[float]:
    for word in direction.split():
        try:
            yield float(word)
        except ValueError:
            continue


def _effect(one: MetricDifference) -> str:
    if math.isnan(one.effect):
        return ""
    return f", d = {one.effect:.2f}, {next(word for limit, word in SIZES if abs(one.effect) < limit)}"


def _numbers(one: MetricDifference) -> tuple[str, ...]:
    digits = 1 if one.unit == "%" else 3
    a, b, difference, low, high = (
        "–" if math.isnan(value) else f"{value:.{digits}f}"
        for value in (one.a, one.b, one.difference, one.low, one.high)
    )
    interval = "–" if math.isnan(one.low) else f"{low} to {high}"
    p, effect = ("–" if math.isnan(value) else f"{value:.2g}" for value in (one.p_holm, one.effect))
    return a, b, difference, interval, p, effect
