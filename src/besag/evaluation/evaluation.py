"""What a suite says of models: rows, figures, and how they are shown.

A part is one model with one method. Its figures come from its rows, and from them alone, so that a folder of rows that
was saved gives the same. Rows without numbers are counted by their status, and are in no figure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from besag.checks import checked
from besag.errors import BesagError, nearest, quoted, require
from besag.evaluation.metrics import MetricValue, evaluate_metrics
from besag.evaluation.suite import Row, Suite
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

Per = Literal["figure", "item"]
PER: tuple[Per, ...] = ("figure", "item")
SHOWN = 40  # figures in a table on the screen


@dataclass(frozen=True)
class Part:
    """One model, asked with one method."""

    suite: Suite
    model: str
    method: str  # "" for a suite that takes none
    dtype: str
    rows: Sequence[Row]

    @cached_property
    def figures(self) -> list[MetricValue]:
        """Of the rows that have numbers, the headline first."""
        scored = [row for row in self.rows if row["status"] == "ok"]
        return evaluate_metrics(self.suite.metrics(scored), scored) if scored else []

    @property
    def unscored(self) -> dict[Status, int]:
        """Status → how many items have it."""
        return dict(Counter(Status(row["status"]) for row in self.rows if row["status"] != "ok"))

    @property
    def label(self) -> str:
        return f"{self.model} · {self.method}" if self.method else self.model


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Presented):
    """A suite on one model or several, with one method or several."""

    suite: Suite
    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def figures(self) -> list[MetricValue]:
        """Of the first part, which is the only one unless several models or methods were asked."""
        return self.parts[0].figures

    def __getitem__(self, name: str) -> MetricValue:
        """The figure of that name over all items: `found["accuracy"].value`; "accuracy/GROUP" is that of a group."""
        if not isinstance(name, str):
            raise BesagError(f"{quoted(name)} names no figure: give a name, as in found['accuracy']")
        names = {one.name if not one.group else f"{one.name}/{one.group}": one for one in reversed(self.figures)}
        if name not in names:
            there = ", ".join(dict.fromkeys(one.name for one in self.figures))
            raise BesagError(f"{self.suite.name!r} has no figure {name!r}.{nearest(name, names)} There are: {there}")
        return names[name]

    @checked
    def table(self, per: Per = "figure") -> list[dict[str, Any]]:
        """One row for each figure or item of each part."""
        if per == "item":
            return [{**self._about(part), **row} for part in self.parts for row in part.rows]
        return [{**self._about(part), **_row(one)} for part in self.parts for one in part.figures]

    def _about(self, part: Part) -> dict[str, Any]:
        return {"suite": self.suite.name, "model": part.model, "method": part.method}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the items (`table("item")`), for JSON."""
        about = {"suite": self.suite.name, "title": self.suite.title, "cite": self.suite.cite, "ties": self.suite.ties}
        meanings = {one.name: one.meaning for part in self.parts for one in part.figures}
        return dict(json_ready({**self._answers(), **about, "figures": self.table(), "meaning": meanings}))

    @checked
    def to_pandas(self, per: Per = "figure") -> DataFrame:
        """`table(per)` as a frame."""
        return data.frame(self, self.table(per), per=per)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """The headline of each group with its 95 % interval, a colour for each part; lines are those of all items."""
        pyplot = require("matplotlib.pyplot", extra="plot")
        shown = [part for part in self.parts if part.figures]
        if not shown:
            raise BesagError("no item has a number, so there is nothing to draw")
        places = {one.group: None for part in shown for one in in_groups(part)} or {"": None}
        height = {group: place for place, group in enumerate(reversed(places))}
        if ax is None:
            size = (7.5, 1.6 + (0.16 + 0.08 * len(shown)) * len(places))
            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        for number, part in enumerate(shown):
            off, colour = 0.25 * (number - (len(shown) - 1) / 2) / max(1, len(shown) - 1), f"C{number % 10}"
            for one in in_groups(part) or part.figures[:1]:
                low, high = one.interval
                error = [[one.value - low], [high - one.value]] if not math.isnan(low) else None
                ax.errorbar(one.value, height[one.group] - off, xerr=error, fmt="o", markersize=4, color=colour)
            ax.axvline(part.figures[0].value, color=colour, linewidth=1, alpha=0.6, label=part.label)
        head = shown[0].figures[0]
        if not math.isnan(head.chance):
            ax.axvline(head.chance, color="0.6", linewidth=1, linestyle=":")
        ax.set_yticks(list(height.values()), [group or "all items" for group in height], fontsize=7)
        ax.set_xlabel(f"{head.name}{f' ({head.unit})' if head.unit else ''}; {head.direction}")
        ax.set_title(self.suite.name)
        ax.legend(fontsize=7)
        return ax

    @property
    def status(self) -> Status:
        return Status.PARTLY if any(part.unscored for part in self.parts) else Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the figures, most important first."""
        heads = [
            f"{part.label}: {part.figures[0].name} {spoken(part.figures[0])}" for part in self.parts if part.figures
        ]
        missing = [
            f"{part.label}: {counted(n, 'item')} not scored: {status.sentence}"
            for part in self.parts for status, n in part.unscored.items()
        ]  # fmt: skip
        dtypes = dict.fromkeys(part.dtype for part in self.parts)
        return [*heads, *missing, f"{self.suite.name}: {self.suite.title}", self.suite.ties, *dtypes]

    def _grids(self) -> list[Grid]:
        several = len(self.parts) > 1
        lines = [
            Line((*([part.label] if several else []), one.name, one.group or "all", f"{one.n:,}", *cells(one)))
            for part in self.parts for one in part.figures[:SHOWN]
        ]  # fmt: skip
        head = (*(["model"] if several else []), "figure", "of", "n", "value", "se", "ties")
        left = (0, 1, 2) if several else (0, 1)
        more = max((len(part.figures) for part in self.parts), default=0) - SHOWN
        return [Grid(head, lines, left=left, note=f"and {more:,} more: table(), or --format tsv" if more > 0 else "")]


def in_groups(part: Part) -> list[MetricValue]:
    """The headline figure, of each group it is given for."""
    return [one for one in part.figures if one.name == part.figures[0].name and one.group]


def spoken(one: MetricValue) -> str:
    """ "84.2 ± 0.3 %"."""
    if math.isnan(one.value):
        return "–"
    digits = 1 if one.unit == "%" else 3
    error = "" if math.isnan(one.se) else f" ± {one.se:.{digits}f}"
    return f"{one.value:.{digits}f}{error}{f' {one.unit}' if one.unit else ''} (n = {one.n:,})"


def cells(one: MetricValue) -> tuple[str, str, str]:
    """Value, standard error and ties, as tables write them."""
    digits = 1 if one.unit == "%" else 3
    value = "–" if math.isnan(one.value) else f"{one.value:.{digits}f}{f' {one.unit}' if one.unit else ''}"
    return value, "–" if math.isnan(one.se) else f"{one.se:.{digits}f}", "–" if one.ties is None else f"{one.ties:,}"


def _row(one: MetricValue) -> dict[str, Any]:
    low, high = one.interval
    return {
        "figure": one.name, "group": one.group, "value": one.value, "unit": one.unit, "n": one.n, "se": one.se,
        "low": low, "high": high, "ties": one.ties, "direction": one.direction,
    }  # fmt: skip
