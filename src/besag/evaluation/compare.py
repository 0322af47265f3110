"""Two runs of the same suites, item by item: is one better, by how much, and how sure is that?

    difference  Δ = value(B) − value(A), over the items that both have numbers for
    interval    95 % percentile bootstrap: items are drawn again, and each draw is used for both
    p           of a mean: sign flips of the paired differences; else 2 min(P(Δ* ≤ 0), P(Δ* ≥ 0)) of the bootstrap;
                that of the headline as it is, those of the others corrected by Holm
    effect      of a mean: d = mean / standard deviation of the paired differences

Where a figure is a mean over groups, items are drawn within their groups, which are given. Knows rows and figures;
refuses to know suites.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.checks import checked
from besag.errors import BesagError
from besag.evaluation.evaluation import Evaluation, Part
from besag.evaluation.figures import HIGHER, LOWER, RESAMPLES, Figure, column
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status
from besag.statistics import holm, sign_flips

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.evaluation.suite import Row

SURE = 0.05
CHUNK = 2**22  # counts in memory at a time
SIZES = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"), (math.inf, "large"))  # Cohen's words


class Difference(NamedTuple):
    """One figure of two runs, on the items they share."""

    suite: str
    figure: str
    group: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float  # nan where it cannot be said
    p_holm: float
    effect: float  # d of Cohen; nan where the figure is no mean
    n: int
    unit: str
    direction: str

    @property
    def sure(self) -> bool:
        return self.p_holm < SURE


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Presented):
    """What two runs of one suite differ in."""

    a: Part
    b: Part
    differences: tuple[Difference, ...]
    shared: int  # items
    alone: int  # items that only one of the two has numbers for

    @property
    def verdict(self) -> str:
        """Of the headline, in words."""
        return f"{self.a.suite.name}: {_verdict(self.differences[0], self.a.label, self.b.label)}"

    def table(self) -> list[dict[str, Any]]:
        """A row for each figure."""
        return [one._asdict() for one in self.differences]

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
        lines = [Line((one.figure, one.group or "all", f"{one.n:,}", *_numbers(one)), strong=one.sure)
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
    theirs_by = {(one.name, one.group): one for one in b.suite.figures(theirs)}
    pairs = [
        (one, theirs_by[one.name, one.group]) for one in a.suite.figures(ours) if (one.name, one.group) in theirs_by
    ]
    found = [_difference(a.suite.name, one, other, ours, theirs) for one, other in pairs]
    corrected = [found[0].p, *holm([one.p for one in found[1:]])]  # the headline is the question that was asked
    alone = len(rows[0].keys() ^ rows[1].keys())
    sure = tuple(one._replace(p_holm=float(p)) for one, p in zip(found, corrected, strict=True))
    return Compared(a, b, sure, len(ids), alone)


def _difference(suite: str, one: Figure, other: Figure, ours: Sequence[Row], theirs: Sequence[Row]) -> Difference:
    low = high = p = effect = math.nan
    if one.mean_of:
        low, high, p, effect = _of_means(one, ours, theirs)
    elif one.statistic is not None:
        low, high, p = _of_statistics(one, ours, theirs)
    return Difference(
        suite, one.name, one.group, one.value, other.value, other.value - one.value, low, high, p, math.nan, effect,
        one.n, one.unit, one.direction,
    )  # fmt: skip


def _of_means(one: Figure, ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[float, float, float, float]:
    members = [place for place, row in enumerate(ours) if not one.group or row[one.by] == one.group]
    scale = 100.0 if one.unit == "%" else 1.0
    d = scale * (
        column([theirs[place] for place in members], one.mean_of)
        - column([ours[place] for place in members], one.mean_of)
    )  # (n,) fmt: skip
    names = [str(ours[place][one.within]) if one.within else "" for place in members]
    _, which = np.unique(names, return_inverse=True)
    count = int(which.max()) + 1
    weights = 1 / (count * np.bincount(which)[which])  # (n,) that sum to 1
    draws = np.sum([_drawn_means(d[which == stratum], stratum) for stratum in range(count)], 0) / count  # (R,)
    low, high = np.quantile(draws, [0.025, 0.975]) if len(d) > 1 else (math.nan, math.nan)
    spread = float(d.std(ddof=1)) if len(d) > 1 else 0.0
    p = float(sign_flips(weights * d)[0])
    return float(low), float(high), p, float(weights @ d) / spread if spread else 0.0 if not d.any() else math.nan


def _drawn_means(d: Floats, seed: int) -> Floats:
    """(R,) means of draws with replacement."""
    generator, n = np.random.default_rng(seed), len(d)
    step = max(1, CHUNK // n)
    found = [d[generator.integers(n, size=(min(step, RESAMPLES - start), n))].mean(1)
             for start in range(0, RESAMPLES, step)]  # fmt: skip
    return np.concatenate(found)


def _of_statistics(one: Figure, ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[float, float, float]:
    assert one.statistic is not None
    members = [place for place, row in enumerate(ours) if not one.group or row[one.by] == one.group]
    generator = np.random.default_rng(0)
    draws = [generator.choice(members, len(members)) for _ in range(RESAMPLES)]
    found = np.array([
        one.statistic([theirs[place] for place in drawn]) - one.statistic([ours[place] for place in drawn])
        for drawn in draws
    ])  # fmt: skip
    found = found[~np.isnan(found)]
    if len(found) < 2:
        return math.nan, math.nan, math.nan
    tail = min(float((found <= 0).mean()), float((found >= 0).mean()))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high), min(1.0, max(2 * tail, 1 / (len(found) + 1)))


# ---- in words


def _verdict(one: Difference, a: str, b: str) -> str:
    if math.isnan(one.difference):
        return f"nothing can be said of {one.figure}"
    unit = " points" if one.unit == "%" else f" {one.unit}" if one.unit else ""
    size = f"{abs(one.difference):.3g}{unit}"
    within = "" if math.isnan(one.low) else f" (95 %: {one.low:.3g} to {one.high:.3g}{_p(one)}{_effect(one)})"
    if math.isnan(one.p):
        return (
            f"{one.figure} of B is {size} {'higher' if one.difference > 0 else 'lower'}; how sure that is was not asked"
        )
    if not one.sure:
        return f"no difference is seen in {one.figure}: B − A is {one.difference:+.3g}{unit}{within}"
    higher, lower = (b, a) if one.difference > 0 else (a, b)
    if one.direction in (HIGHER, LOWER):
        best = higher if one.direction == HIGHER else lower
        return f"{best} is better in {one.figure}, by {size}{within}"
    told = f"{one.figure} of {higher} is {size} higher than that of {lower}{within}"
    ideal = next(_ideals(one.direction), math.nan)
    nearer = a if abs(one.a - ideal) < abs(one.b - ideal) else b
    return told if math.isnan(ideal) else f"{told}; {one.direction}, and {nearer} is nearer"


def _ideals(direction: str) -> Iterator[float]:
    for word in direction.split():
        try:
            yield float(word)
        except ValueError:
            continue


def _p(one: Difference) -> str:
    return f", p = {one.p_holm:.2g}"


def _effect(one: Difference) -> str:
    if math.isnan(one.effect):
        return ""
    return f", d = {one.effect:.2f}, {next(word for limit, word in SIZES if abs(one.effect) < limit)}"


def _numbers(one: Difference) -> tuple[str, ...]:
    digits = 1 if one.unit == "%" else 3
    a, b, difference, low, high = (
        "–" if math.isnan(value) else f"{value:.{digits}f}"
        for value in (one.a, one.b, one.difference, one.low, one.high)
    )
    interval = "–" if math.isnan(one.low) else f"{low} to {high}"
    p, effect = ("–" if math.isnan(value) else f"{value:.2g}" for value in (one.p_holm, one.effect))
    return a, b, difference, interval, p, effect
