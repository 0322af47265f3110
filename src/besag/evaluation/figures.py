"""Figures: a number with what must stand beside it, and the usual ways to make one from rows.

    mean         m = Σ x_i / n                       se = √(Σ (x_i − m)² / (n (n − 1)))
    accuracy     a = (wins + ½ ties) / n             se = √(a (1 − a) / n): binomial, a little too large with ties
    over groups  m = Σ_g m_g / G                     se = √(Σ_g se_g²) / G: the groups are given, not drawn
    correlation  r                                   se by the bootstrap over rows

Knows rows as mappings and numbers in them; nothing of any suite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Floats, Ints
from besag.errors import BesagError
from besag.statistics import pearson, spearman

HIGHER, LOWER = "higher is better", "lower is better"
BINOMIAL = "√(a (1 − a) / n)"
OF_MEAN = "√(Σ (x − m)² / (n (n − 1)))"
OF_GROUPS = "√(Σ se²) / G over the G groups, which are given and not drawn"
OF_GROUPS_BY_SIZE = "√(Σ n² se²) / Σ n over the groups, which are given and not drawn"
RESAMPLES = 1000  # of a bootstrap
OF_BOOTSTRAP = f"the bootstrap over items, {RESAMPLES:,} draws"


Statistic: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], float]


class Figure(NamedTuple):
    """One number that a suite reports."""

    name: str  # "accuracy"
    value: float  # nan where it cannot be said
    n: int  # items that it is made of
    se: float  # its standard error; nan where there is none
    meaning: str  # a sentence
    group: str = ""  # of which items; "" for all of them
    ties: int | None = None  # None: there can be none
    direction: str = HIGHER  # or LOWER, "50 is ideal", "0 is ideal", "" where neither is
    unit: str = "%"
    error: str = BINOMIAL  # how se is found
    low: float = math.nan  # a 95 % interval, where one is found otherwise than by ± 1.96 se
    high: float = math.nan
    chance: float = math.nan  # what guessing gives
    # How it is found from rows, so that two runs can be compared item by item: as a mean, or by a function
    mean_of: str = ""  # the column whose mean it is (in % where that is the unit) …
    by: str = "group"  # … over the rows in which this column says `group` (all, where that is "") …
    within: str = ""  # … and over what this column says, each of its values counting the same
    statistic: Statistic | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %."""
        if not math.isnan(self.low):
            return self.low, self.high
        return self.value - 1.96 * self.se, self.value + 1.96 * self.se


def groups(rows: Sequence[Mapping[str, Any]], by: str = "group") -> dict[str, list[Mapping[str, Any]]]:
    """The rows of each group, in the order in which these first come."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row[by]), []).append(row)
    return found


def column(rows: Sequence[Mapping[str, Any]], name: str) -> Floats:
    """(n,) one number of each row."""
    return np.array([row[name] for row in rows], np.float64)


def credit(better: float, worse: float) -> float:
    """1 where the one that should win does, ½ of a tie, else 0."""
    return float(better > worse) + 0.5 * float(better == worse)


def accuracy(
    rows: Sequence[Mapping[str, Any]], meaning: str, name: str = "accuracy", *, of: str = "credit", group: str = "",
    direction: str = HIGHER, chance: float = 50.0,
) -> Figure:  # fmt: skip
    """Of credits 1, ½ and 0, in per cent."""
    credits = column(rows, of)
    share = float(credits.mean())
    se = math.sqrt(share * (1 - share) / len(credits))
    return Figure(
        name, 100 * share, len(credits), 100 * se, meaning, group, int((credits == 0.5).sum()), direction,
        mean_of=of, chance=chance,
    )  # fmt: skip


def mean(
    rows: Sequence[Mapping[str, Any]], of: str, meaning: str, name: str, *, group: str = "", unit: str = "",
    direction: str = HIGHER,
) -> Figure:  # fmt: skip
    """Of a column of numbers."""
    values = column(rows, of)
    n = len(values)
    se = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Figure(name, float(values.mean()), n, se, meaning, group, None, direction, unit, OF_MEAN, mean_of=of)


def over_groups(
    parts: Sequence[Figure], meaning: str, name: str, *, group: str = "", by: str = "group", by_size: bool = False
) -> Figure:
    """The mean of the figures of groups, each counting the same, or (`by_size`) as its items are many.

    `by`: the column of rows that says `group`, where the parts are those of some groups only.
    """
    if not parts:
        raise BesagError("a mean over groups needs at least one group")
    weights: Floats = np.array([one.n if by_size else 1 for one in parts], np.float64)
    weights /= weights.sum()
    value = float(weights @ [one.value for one in parts])
    se = math.sqrt(float(weights**2 @ [one.se**2 for one in parts]))
    ties = None if all(one.ties is None for one in parts) else sum(one.ties or 0 for one in parts)
    first = parts[0]
    return Figure(
        name, value, sum(one.n for one in parts), se, meaning, group, ties, first.direction, first.unit,
        OF_GROUPS_BY_SIZE if by_size else OF_GROUPS, chance=first.chance, mean_of=first.mean_of, by=by,
        within="" if by_size else first.by,
    )  # fmt: skip


def bootstrap(
    count: int, statistic: Callable[[Ints], float], *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float, float]:
    """The standard error of a statistic of `count` rows, and its 95 % percentile interval.

    `statistic` is given the numbers of the rows that were drawn, with replacement. Draws in which it is no number (a
    correlation of equal values) are left out.
    """
    generator = np.random.default_rng(seed)
    drawn = (statistic(generator.integers(count, size=count)) for _ in range(resamples if count > 1 else 0))
    found = [value for value in drawn if not math.isnan(value)]
    if len(found) < 2:
        return math.nan, math.nan, math.nan
    low, high = np.quantile(found, [0.025, 0.975])
    return float(np.std(found, ddof=1)), float(low), float(high)


def correlation(
    rows: Sequence[Mapping[str, Any]], of: str, to: str, meaning: str, name: str, *, group: str = "", rank: bool = False
) -> Figure:
    """Pearson's r of two columns, or (`rank`) Spearman's, with a bootstrap interval."""
    how = spearman if rank else pearson
    x, y = column(rows, of), column(rows, to)  # (n,)
    se, low, high = bootstrap(len(x), lambda drawn: how(x[drawn], y[drawn]))
    value = how(x, y) if len(x) > 1 else math.nan
    return Figure(
        name, value, len(x), se, meaning, group, None, HIGHER, "", OF_BOOTSTRAP, low, high, 0.0,
        statistic=lambda some: how(column(some, of), column(some, to)),
    )  # fmt: skip
