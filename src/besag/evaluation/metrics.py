"""Metrics as recipes: which rows of items are used, how they become a number with an error, how two runs are compared.

    Mean          m = Σ x_i / n                se = √(Σ (x_i − m)² / (n (n − 1))), of a share √(m (1 − m) / n)
      by group    m = Σ_g m_g / G              se = √(Σ_g se_g²) / G: the groups are fixed, their items are a sample
    Ratio         R = Σ t_i / Σ m_i            se² = n / (n − 1) · Σ (t_i − R m_i)² / (Σ m_i)²  (delta method)
    Statistic     f(columns)                   se and interval by the bootstrap over rows or clusters of rows
    SumStatistic  f(Σ x_i), vectors x_i        the same
    Average       mean of a statistic over groups, each with its own rows

Intervals are of 95 %: ± 1.96 se, or the percentiles of the bootstrap, extended to the value itself where a biased
statistic lies outside them. A comparison of runs A and B pairs the rows of the same items:

    interval   percentiles of value(B*) − value(A*): each draw of items is used for both, within groups where these
               are fixed; extended to the observed difference as above
    p          of a mean: sign flips of the paired differences; otherwise 2 min(P(Δ* ≤ 0), P(Δ* ≥ 0))
    effect     of a mean: d = mean / standard deviation of the paired differences

A benchmark lists `Metric`s; `evaluate_metrics` and `compare_metrics` do all the rest. Independent of any benchmark.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Floats
from besag.statistics import TIE, sign_flips

HIGHER, LOWER = "higher is better", "lower is better"
RESAMPLES = 1000  # of a bootstrap
CHUNK = 2**22  # drawn numbers in memory at a time
LEVEL = 0.05  # of a test
LARGEST = 700.0  # exponent: exp of more is infinite

ItemRow: TypeAlias = Mapping[str, Any]  # one item, as it is saved
ItemValue: TypeAlias = str | Callable[[ItemRow], Any]  # a column, or a number (SumStatistic: a vector) made of a row
ItemKey: TypeAlias = str | Callable[[ItemRow], str]  # a column, or a name made of a row


class Estimate(NamedTuple):
    """The value of one run."""

    value: float  # nan: undefined on these rows
    se: float  # nan: too few rows
    low: float  # 95 % interval
    high: float


class PairedTest(NamedTuple):
    """The difference B − A on the same items."""

    low: float  # 95 % interval; nan: too few rows
    high: float
    p: float
    effect: float = math.nan  # Cohen's d; nan where the metric is not a mean


class MetricValue(NamedTuple):
    """A metric of one run."""

    name: str
    value: float
    n: int  # items
    se: float
    meaning: str
    group: str  # which items; "" for all
    ties: int | None  # None: there can be none
    direction: str
    unit: str
    error: str  # how se is found
    low: float  # 95 % interval
    high: float
    chance: float  # value of guessing

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %."""
        return self.low, self.high


class MetricDifference(NamedTuple):
    """A metric of two runs, on the items that both have."""

    name: str
    group: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float
    effect: float
    n: int
    unit: str
    direction: str
    p_holm: float = math.nan  # p, corrected for the other metrics of the benchmark

    @property
    def significant(self) -> bool:
        return self.p_holm < LEVEL


UNKNOWN = PairedTest(math.nan, math.nan, math.nan)
NO_ESTIMATE = Estimate(math.nan, math.nan, math.nan, math.nan)


# ---- rows


def groups(rows: Sequence[ItemRow], by: ItemKey = "group") -> dict[str, list[ItemRow]]:
    """Return the rows of each group, in the order of their first rows."""
    found: dict[str, list[ItemRow]] = {}
    for row in rows:
        found.setdefault(_key(row, by), []).append(row)
    return found


def column(rows: Sequence[ItemRow], value: ItemValue) -> Floats:
    """Return one number (n,) or vector (n, k) of each row."""
    if isinstance(value, str):
        return np.array([row[value] for row in rows], np.float64)
    return np.array([value(row) for row in rows], np.float64)


def credit(better: float, worse: float) -> float:
    """Return 1 where the first is larger, ½ for a tie, else 0."""
    return float(better > worse) + 0.5 * float(better == worse)


def is_tie(row: ItemRow) -> bool:
    """Return whether a row has half a credit."""
    return bool(row["credit"] == 0.5)


def _key(row: ItemRow, by: ItemKey) -> str:
    return str(row[by] if isinstance(by, str) else by(row))


# ---- estimators


class Estimator(ABC):
    """A statistic of rows: its value, its error, and the comparison of two runs by it."""

    @abstractmethod
    def value(self, rows: Sequence[ItemRow]) -> float:
        """Return the value, nan where these rows do not define it."""

    @abstractmethod
    def estimate(self, rows: Sequence[ItemRow]) -> Estimate:
        """Return the value with its error."""

    @abstractmethod
    def compare(self, a: Sequence[ItemRow], b: Sequence[ItemRow]) -> PairedTest:
        """Return the paired comparison on rows of the same items, in the same order."""

    @property
    @abstractmethod
    def error_text(self) -> str:
        """How the standard error is found, in words."""

    def usable(self, *runs: Sequence[ItemRow]) -> list[bool]:
        """Return which rows define the value, of one run or of both runs of the same items."""
        return [True] * len(runs[0])


@dataclass(frozen=True)
class Mean(Estimator):
    """The mean of a column; with `over`, the mean of the means of groups, level by level."""

    column: ItemValue = "credit"
    over: tuple[ItemKey, ...] = ()  # ("group",): each group counts the same; ("task", "subset"): nested
    by_size: bool = False  # groups count by their number of rows: the mean over rows, with the error of groups
    error: Literal["binomial", "sample"] = "binomial"
    scale: float = 100.0

    def value(self, rows: Sequence[ItemRow]) -> float:
        return self._nested(rows, self.over)[0]

    def estimate(self, rows: Sequence[ItemRow]) -> Estimate:
        value, se = self._nested(rows, self.over)
        return Estimate(value, se, value - 1.96 * se, value + 1.96 * se)

    def _nested(self, rows: Sequence[ItemRow], over: Sequence[ItemKey]) -> tuple[float, float]:
        """Return value and standard error."""
        if over:
            parts = list(groups(rows, over[0]).values())
            weights: Floats = np.array([len(one) if self.by_size else 1 for one in parts], np.float64)
            weights /= weights.sum()
            found = [self._nested(one, over[1:]) for one in parts]
            value = float(weights @ [one for one, _ in found])
            return value, math.sqrt(float(weights**2 @ [se**2 for _, se in found]))
        values, n = column(rows, self.column), len(rows)
        mean = float(values.mean())
        if self.error == "binomial":
            return self.scale * mean, self.scale * math.sqrt(mean * (1 - mean) / n)
        spread = float(values.std(ddof=1)) if n > 1 and math.isfinite(mean) else math.nan
        return self.scale * mean, self.scale * spread / math.sqrt(n)

    def compare(self, a: Sequence[ItemRow], b: Sequence[ItemRow]) -> PairedTest:
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            d = self.scale * (column(b, self.column) - column(a, self.column))  # (n,)
        if not np.isfinite(d).all():
            return UNKNOWN
        levels = () if self.by_size else self.over
        keys = [tuple(_key(row, level) for level in levels) for row in a]
        strata = _Strata(keys)
        difference = float(strata.weights @ d)
        low, high = _interval(strata.means(d), difference) if strata.largest > 1 else (math.nan, math.nan)
        spread = float(d.std(ddof=1)) if len(d) > 1 else 0.0
        effect = difference / spread if spread else math.nan if d.any() else 0.0
        return PairedTest(low, high, float(sign_flips(strata.weights * d)[0]), effect)

    @property
    def error_text(self) -> str:
        if self.over:
            return f"{'√(Σ n² se²) / Σ n' if self.by_size else '√(Σ se²) / G'} over the G groups, which are fixed"
        return "√(a (1 − a) / n)" if self.error == "binomial" else "√(Σ (x − m)² / (n (n − 1)))"


class _Strata:
    """Rows in nested groups: what each row weighs in the mean of means, and bootstrap means within the groups."""

    def __init__(self, keys: Sequence[tuple[str, ...]]) -> None:
        self.depth = len(keys[0])
        self.members: dict[tuple[str, ...], list[int]] = {}
        for place, key in enumerate(keys):
            self.members.setdefault(key, []).append(place)
        self.leaves = sorted(self.members)
        self.largest = max(map(len, self.members.values()))
        self.weights = np.empty(len(keys))  # (n,) that sum to 1
        for key, places in self.members.items():
            above = math.prod(len(self._below(key[:level])) for level in range(self.depth))
            self.weights[places] = 1 / (above * len(places))

    def _below(self, prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
        depth = len(prefix)
        return sorted({key[: depth + 1] for key in self.leaves if key[:depth] == prefix})

    def means(self, d: Floats, prefix: tuple[str, ...] = ()) -> Floats:
        """Return (R,) means of means, of rows drawn with replacement within each innermost group."""
        if len(prefix) == self.depth:
            return _drawn_means(d[self.members[prefix]], self.leaves.index(prefix))
        below = self._below(prefix)
        return np.asarray(np.sum([self.means(d, one) for one in below], 0) / len(below), np.float64)


class _Resampled(Estimator):
    """An estimator with a bootstrap. Subclasses state its observations and what they give."""

    @abstractmethod
    def observations(self, rows: Sequence[ItemRow]) -> tuple[Floats, ...]:
        """Return arrays (n, …): what is resampled, together."""

    @abstractmethod
    def of(self, observations: tuple[Floats, ...]) -> float:
        """Return the value of observations."""

    def value(self, rows: Sequence[ItemRow]) -> float:
        return self.of(self.observations(rows))

    def estimate(self, rows: Sequence[ItemRow]) -> Estimate:
        known = self.observations(rows)
        value, draws = self.of(known), self.draws(known)
        draws = draws[~np.isnan(draws)]
        if math.isnan(value) or len(draws) < 2:
            return Estimate(value, math.nan, math.nan, math.nan)
        return Estimate(value, float(np.std(draws, ddof=1)), *_interval(draws, value))

    def compare(self, a: Sequence[ItemRow], b: Sequence[ItemRow]) -> PairedTest:
        ours, theirs = self.observations(a), self.observations(b)
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            draws = self.draws(theirs) - self.draws(ours)
        return _tested(self.of(ours), self.of(theirs), draws)

    def draws(self, observations: tuple[Floats, ...], seed: int = 0) -> Floats:
        """Return (R,) values of observations drawn with replacement: the same ones for the same n and seed."""
        generator, n = np.random.default_rng(seed), len(observations[0])
        drawn = (generator.integers(n, size=n) for _ in range(RESAMPLES if n > 1 else 0))
        return np.array([self.of(tuple(one[which] for one in observations)) for which in drawn])


@dataclass(frozen=True)
class Ratio(_Resampled):
    """scale · Σ top / Σ bottom, or its exponential; the error is that of a ratio of sums."""

    top: ItemValue
    bottom: ItemValue
    scale: float = 1.0
    exponential: bool = False

    def observations(self, rows: Sequence[ItemRow]) -> tuple[Floats, ...]:
        return column(rows, self.top), column(rows, self.bottom)

    def of(self, observations: tuple[Floats, ...]) -> float:
        top, bottom = (float(one.sum()) for one in observations)
        return self._shown(top / bottom) if bottom else math.nan

    def estimate(self, rows: Sequence[ItemRow]) -> Estimate:
        (top, bottom), n = self.observations(rows), len(rows)
        whole = float(bottom.sum())
        if not whole:
            return NO_ESTIMATE
        ratio = float(top.sum()) / whole
        rest = top - ratio * bottom
        error = math.sqrt(n / (n - 1) * float(rest @ rest)) / whole if n > 1 else math.nan
        value = self._shown(ratio)
        low, high = sorted(self._shown(ratio + side * error) for side in (-1.96, 1.96))
        return Estimate(value, abs(self.scale) * error * (value if self.exponential else 1.0), low, high)

    def _shown(self, ratio: float) -> float:
        scaled = self.scale * ratio
        if not self.exponential:
            return scaled
        return math.inf if scaled > LARGEST else math.exp(scaled)

    @property
    def error_text(self) -> str:
        return "of a ratio of sums over items (delta method)"


@dataclass(frozen=True)
class Statistic(_Resampled):
    """Any function of columns. With `unit`, means within the clusters of that column are resampled and not rows."""

    function: Callable[..., float]
    columns: tuple[ItemValue, ...]
    unit: ItemKey = ""  # "": each row alone
    of_units: str = "items"  # what is resampled, in words

    def observations(self, rows: Sequence[ItemRow]) -> tuple[Floats, ...]:
        found = tuple(column(rows, one) for one in self.columns)
        if not self.unit:
            return found
        places: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            places.setdefault(_key(row, self.unit), []).append(place)
        return tuple(np.array([one[own].mean(0) for own in places.values()]) for one in found)

    def of(self, observations: tuple[Floats, ...]) -> float:
        return float(self.function(*observations))

    @property
    def error_text(self) -> str:
        return f"the bootstrap over {self.of_units}, {RESAMPLES:,} draws"


@dataclass(frozen=True)
class SumStatistic(_Resampled):
    """A function of the sum over rows of a column of vectors (F1, BLEU, GLEU)."""

    function: Callable[[Floats], float]
    column: ItemValue

    def observations(self, rows: Sequence[ItemRow]) -> tuple[Floats, ...]:
        return (column(rows, self.column),)  # (n, k)

    def of(self, observations: tuple[Floats, ...]) -> float:
        return float(self.function(observations[0].sum(0)))

    def draws(self, observations: tuple[Floats, ...], seed: int = 0) -> Floats:
        generator, (table,) = np.random.default_rng(seed), observations
        n, found = len(table), []
        step = max(1, CHUNK // max(n, table.shape[1]))
        for start in range(0, RESAMPLES if n > 1 else 0, step):
            drawn = (generator.integers(n, size=n) for _ in range(min(step, RESAMPLES - start)))
            times = np.array([np.bincount(one, minlength=n) for one in drawn], np.float64)  # (r, n)
            found += [float(self.function(sums)) for sums in times @ table]
        return np.array(found)

    @property
    def error_text(self) -> str:
        return f"the bootstrap over items, {RESAMPLES:,} draws"


@dataclass(frozen=True)
class Average(Estimator):
    """The mean of a statistic over groups. Groups in which it is undefined are left out, of a comparison in both runs.

    The groups are fixed: their rows are resampled within each.
    """

    inner: _Resampled
    over: ItemKey = "group"

    def value(self, rows: Sequence[ItemRow]) -> float:
        values = [self.inner.value(own) for own in groups(rows, self.over).values()]
        known = [value for value in values if not math.isnan(value)]
        return float(np.mean(known)) if known else math.nan

    def estimate(self, rows: Sequence[ItemRow]) -> Estimate:
        found = [self.inner.estimate(own) for own in groups(rows, self.over).values()]
        known = [one for one in found if not math.isnan(one.value)]
        if not known:
            return NO_ESTIMATE
        value = float(np.mean([one.value for one in known]))
        se = math.sqrt(sum(one.se**2 for one in known)) / len(known)
        return Estimate(value, se, value - 1.96 * se, value + 1.96 * se)

    def usable(self, *runs: Sequence[ItemRow]) -> list[bool]:
        parts = (part for rows in runs for part in groups(rows, self.over).items())
        undefined = {name for name, own in parts if math.isnan(self.inner.value(own))}
        return [_key(row, self.over) not in undefined for row in runs[0]]

    def compare(self, a: Sequence[ItemRow], b: Sequence[ItemRow]) -> PairedTest:
        ours, theirs = groups(a, self.over), groups(b, self.over)
        draws = []
        for seed, name in enumerate(sorted(ours)):
            one, other = self.inner.observations(ours[name]), self.inner.observations(theirs[name])
            if len(one[0]) < 2:
                return UNKNOWN
            draws.append(self.inner.draws(other, seed) - self.inner.draws(one, seed))
        return _tested(self.value(a), self.value(b), np.mean(draws, 0))

    @property
    def error_text(self) -> str:
        return f"√(Σ se²) / G over the G groups, which are fixed; se of a group: {self.inner.error_text}"


# ---- resampling


def _drawn_means(d: Floats, seed: int) -> Floats:
    """Return (R,) means of draws with replacement."""
    generator, n = np.random.default_rng(seed), len(d)
    step = max(1, CHUNK // n)
    sizes = (min(step, RESAMPLES - start) for start in range(0, RESAMPLES, step))
    return np.concatenate([d[generator.integers(n, size=(size, n))].mean(1) for size in sizes])


def _interval(draws: Floats, value: float) -> tuple[float, float]:
    """Return the 95 % percentiles of draws, extended to the value."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return min(float(low), value), max(float(high), value)


def _tested(a: float, b: float, draws: Floats) -> PairedTest:
    """Return the interval and p-value of b − a from (R,) bootstrap differences; nan draws are left out."""
    draws, difference = draws[~np.isnan(draws)], b - a
    if not math.isfinite(difference) or len(draws) < 2:
        return UNKNOWN
    draws = np.where(np.abs(draws) <= TIE * max(1.0, abs(a), abs(b)), 0.0, draws)  # equal up to rounding
    tail = min(float((draws <= 0).mean()), float((draws >= 0).mean()))
    return PairedTest(*_interval(draws, difference), min(1.0, max(2 * tail, 1 / (len(draws) + 1))))


# ---- metrics


def _all_rows(row: ItemRow) -> bool:
    return True


@dataclass(frozen=True)
class Metric:
    """A named number of a benchmark: an estimator, the rows it uses, and what a reader must know."""

    name: str
    estimator: Estimator
    meaning: str
    group: str = ""  # which items, in a word; "" for all
    within: tuple[ItemKey, str] | None = None  # the rows it uses: in which this column or key has this value …
    where: Callable[[ItemRow], bool] = _all_rows  # … and this holds; of a comparison, in both runs
    fit: Callable[[Sequence[ItemRow]], Sequence[ItemRow]] | None = None  # adds columns that need all rows together
    size: ItemValue | None = None  # how many of n a row counts for; None: one
    unit: str = "%"
    direction: str = HIGHER  # or LOWER, "50 is ideal", "" where neither is
    chance: float = math.nan  # value of guessing
    ties: ItemValue | None = None  # how many ties a row holds; None: there can be none

    def uses(self, row: ItemRow) -> bool:
        """Return whether it is computed from a row."""
        return (self.within is None or _key(row, self.within[0]) == self.within[1]) and self.where(row)

    def fitted(self, rows: Sequence[ItemRow]) -> Sequence[ItemRow]:
        """Return rows with the columns of `fit`."""
        return rows if self.fit is None else self.fit(rows)

    def count(self, rows: Sequence[ItemRow]) -> int:
        """Return n."""
        return len(rows) if self.size is None else int(column(rows, self.size).sum())


def per_group(rows: Sequence[ItemRow], by: ItemKey, metric: Metric) -> list[Metric]:
    """Return a copy of a metric of all items for each value of `by` among the rows that it uses."""
    names = dict.fromkeys(_key(row, by) for row in rows if metric.uses(row))
    return [replace(metric, group=name, within=(by, name)) for name in names]


def evaluate_metric(metric: Metric, rows: Sequence[ItemRow]) -> MetricValue:
    """Return the value of a metric with its error."""
    return evaluate_metrics([metric], rows)[0]


def evaluate_metrics(metrics: Sequence[Metric], rows: Sequence[ItemRow]) -> list[MetricValue]:
    """Return the values of metrics with their errors."""
    items = _Items(rows)
    return [_evaluated(one, *items.used(one)) for one in metrics]


def compare_metric(metric: Metric, a: Sequence[ItemRow], b: Sequence[ItemRow]) -> MetricDifference:
    """Return the difference B − A of a metric, on the rows that it uses in both runs.

    The rows are of the same items, in the same order.
    """
    return compare_metrics([(metric, metric)], a, b)[0]


def compare_metrics(
    pairs: Sequence[tuple[Metric, Metric]], a: Sequence[ItemRow], b: Sequence[ItemRow]
) -> list[MetricDifference]:
    """Return the difference B − A of each metric, as run A and as run B has it: options of a benchmark may differ."""
    items = _Items(a, b)
    return [_compared(*pair, *items.used(*pair)) for pair in pairs]


def _evaluated(metric: Metric, used: Sequence[ItemRow]) -> MetricValue:
    found = metric.estimator.estimate(metric.fitted(used)) if used else NO_ESTIMATE
    return MetricValue(
        metric.name, found.value, metric.count(used), found.se, metric.meaning, metric.group,
        None if metric.ties is None else int(column(used, metric.ties).sum()), metric.direction, metric.unit,
        metric.estimator.error_text, found.low, found.high, metric.chance,
    )  # fmt: skip


def _compared(metric: Metric, other: Metric, a: Sequence[ItemRow], b: Sequence[ItemRow]) -> MetricDifference:
    first = second = math.nan
    found = UNKNOWN
    if a:
        ours, theirs = metric.fitted(a), other.fitted(b)
        first, second = metric.estimator.value(ours), metric.estimator.value(theirs)
        found = metric.estimator.compare(ours, theirs)
    return MetricDifference(
        metric.name, metric.group, first, second, second - first, found.low, found.high, found.p, found.effect,
        metric.count(a), metric.unit, metric.direction,
    )  # fmt: skip


class _Items:
    """The rows of one run, or of two runs of the same items; groups are looked up once for all metrics."""

    def __init__(self, *runs: Sequence[ItemRow]) -> None:
        self.runs = runs
        self.groups: dict[ItemKey, dict[str, list[int]]] = {}

    def used(self, *metrics: Metric) -> list[list[ItemRow]]:
        """Return the rows of each run, of the items that its metric uses in all of them."""
        within = metrics[0].within
        places = list(range(len(self.runs[0]))) if within is None else self._members(*within)
        for metric, rows in zip(metrics, self.runs, strict=True):
            if metric.where is not _all_rows:
                places = [place for place in places if metric.where(rows[place])]
        used = [[rows[place] for place in places] for rows in self.runs]
        kept = metrics[0].estimator.usable(*used)
        return used if all(kept) else [[row for row, keep in zip(rows, kept, strict=True) if keep] for rows in used]

    def _members(self, by: ItemKey, name: str) -> list[int]:
        """Return which items are in a group, in all runs."""
        if by not in self.groups:
            found = self.groups[by] = {}
            for place, (first, *others) in enumerate(zip(*self.runs, strict=True)):
                key = _key(first, by)
                if all(_key(row, by) == key for row in others):
                    found.setdefault(key, []).append(place)
        return self.groups[by].get(name, [])


__all__ = [
    "HIGHER", "LOWER", "Average", "Estimate", "Estimator", "ItemKey", "ItemRow", "ItemValue", "Mean", "Metric",
    "MetricDifference", "MetricValue", "PairedTest", "Ratio", "Statistic", "SumStatistic", "column", "compare_metric",
    "compare_metrics", "credit", "evaluate_metric", "evaluate_metrics", "groups", "is_tie", "per_group",
]  # fmt: skip
