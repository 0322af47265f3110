"""What an experiment found: numbers, figures, a sentence, and whether what was claimed holds.

Numbers are there twice: as arrays, for whoever goes on with them, and as tables of rows, for readers and files. A claim
is a sentence with a verdict, decided by the numbers. Knows no experiment, and no matplotlib before a figure is wanted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.checks import checked
from besag.errors import BesagError, nearest, quoted, require
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, lines
from besag.results.result import Presented
from besag.results.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from pandas import DataFrame

SIZE = 6.4, 3.6  # inches of a figure, the usual


@dataclass(frozen=True)
class Drawing:
    """A figure that can be drawn: what it shows, in a sentence, and how, into axes that are given."""

    caption: str
    draw: Callable[[Axes], object]
    size: tuple[float, float] = SIZE


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Presented):
    """Made by `Experiment.measure`; the last three fields are filled in by `Experiment.run`."""

    shown: str  # what was shown, in a sentence
    claims: Mapping[str, bool]  # each a sentence, and whether the numbers bear it out
    tables: Mapping[str, Sequence[Mapping[str, Any]]]  # by title: rows of numbers and words, all with the same columns
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    figures: Mapping[str, Drawing] = field(default_factory=dict)
    notes: Sequence[str] = ()  # what a reader must know beside: conditions, what was not done
    name: str = ""  # of the experiment
    title: str = ""
    command: str = ""  # that runs it again

    @property
    def holds(self) -> bool:
        """Does every claim?"""
        return all(self.claims.values())

    @property
    def status(self) -> Status:
        return Status.OK if self.holds else Status.REFUTED

    @property
    def facts(self) -> list[str]:
        """What was shown, or which claims do not hold, and conditions."""
        wrong = [f"DOES NOT HOLD: {said}" for said, holds in self.claims.items() if not holds]
        kept = [f"{len(self.claims) - len(wrong)} of {len(self.claims)} claims hold"] if self.claims else []
        return [*(wrong or [self.shown]), *kept, *self.notes]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON, but for the figures, which are made of its numbers."""
        names = ("name", "title", "command", "shown", "holds", "claims", "tables", "arrays", "notes")
        return dict(json_ready({**self._answers(), **{name: getattr(self, name) for name in names}}))

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all tables, each with the experiment's name and its table's."""
        return [{"experiment": self.name, "table": title, **row} for title, rows in self.tables.items() for row in rows]

    @checked
    def to_pandas(self, table: str | None = None) -> DataFrame:
        """One row a row of a table, the first if none is named."""
        title = _known(self.tables, table, "table")
        return data.frame(self, [dict(row) for row in self.tables[title]], table=title)

    @checked
    def plot(self, ax: Axes | None = None, figure: str | None = None) -> Axes:
        """One of the figures, the first if none is named, into axes of yours or new ones."""
        drawing = self.figures[_known(self.figures, figure, "figure")]
        if ax is None:
            _, ax = require("matplotlib.pyplot", extra="plot").subplots(figsize=drawing.size, layout="constrained")
        drawing.draw(ax)
        return ax

    @checked
    def svg(self, figure: str | None = None) -> str:
        """The same as markup that stands in a page: no file, no font, nothing fetched, the same bytes every time."""
        figure = _known(self.figures, figure, "figure")
        drawing = self.figures[figure]
        matplotlib = require("matplotlib", extra="plot")
        made = require("matplotlib.figure", extra="plot").Figure(figsize=drawing.size, layout="constrained")
        page = io.StringIO()
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{self.name} {figure}"}):
            drawing.draw(made.add_subplot())
            made.savefig(page, format="svg", metadata={"Date": None})
        svg = page.getvalue()
        return re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)

    def _title(self) -> Sequence[str]:
        return [self.title] if self.title else ()

    def _grids(self) -> list[Grid]:
        return [grid(rows, note=title) for title, rows in self.tables.items()]


def grid(rows: Sequence[Mapping[str, Any]], note: str = "") -> Grid:
    """A table as readers see it; words stand to the left."""
    if not rows:
        return Grid((), ())
    head = list(rows[0])
    words = [at for at, name in enumerate(head) if all(isinstance(row[name], str) for row in rows)]
    return Grid(head, lines([[cell(row[name]) for name in head] for row in rows]), words, note=note)


def cell(value: object) -> str:
    """Numbers by four digits that count."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}".replace("-", "−").replace("inf", "∞").replace("nan", "–")
    if isinstance(value, int | np.integer):
        return f"{value:,}".replace("-", "−")
    return "–" if value is None else str(value)


def _known(there: Mapping[str, object], name: str | None, what: str) -> str:
    if not there:
        raise BesagError(f"this finding has no {what}")
    if name is None:
        return next(iter(there))
    if name not in there:
        raise BesagError(f"there is no {what} {quoted(name)}.{nearest(name, there)} There are: {', '.join(there)}")
    return name
