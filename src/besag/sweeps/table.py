"""What came of a sweep: a row for each run, the mean over seeds, a curve with its power law.

A number of a run is the last of its kind in its log. Parameters are counted in its files, where a tied embedding stands
once; flops are 6 · parameters · tokens, the usual reckoning of a pass forward and back. Figures are the headlines of
the suites. Knows folders of runs and of judgements.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from besag.checks import checked
from besag.errors import BesagError, nearest, quoted, require
from besag.evaluation import saved
from besag.files.writing import write_rows
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import counted
from besag.sweeps.cells import Cell, written
from besag.sweeps.power_law import LEAST, PowerLaw, power_law
from besag.sweeps.running import JUDGED, RUNS, model_of
from besag.training.run import logs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLE = "table.tsv"
SEED = "run.seed"
SIZES = ("parameters", "tokens", "flops")
LOSS = "heldout_loss"
LOGGED = (LOSS, "pseudo_bits_per_character", "minimal_pairs")
OTHER_QUESTIONS = ("masking.", "objective.", "tokenizer.", "data.")  # keys that change what a held-out loss is about


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Presented):
    """Runs side by side."""

    folder: Path
    keys: tuple[str, ...]  # that vary
    rows: tuple[dict[str, Any], ...]
    wrong: Mapping[str, str]  # run → what kept it from its end

    @property
    def status(self) -> Status:
        return Status.PARTLY if self.wrong else Status.OK

    @property
    def numbers(self) -> list[str]:
        """The columns that compare runs, in the order of the table."""
        known = dict.fromkeys(name for row in self.rows for name in row)
        return [name for name in known if name not in ("run", "status", *self.keys) and not name.endswith(" ±")]

    @property
    def means(self) -> list[dict[str, Any]]:
        """Rows that differ in the seed alone, put together: means, with "… ±", the standard deviation over seeds."""
        groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        others = [key for key in self.keys if key != SEED]
        for row in self.rows:
            if row["status"] == "ok":
                groups.setdefault(tuple(written(row[key]) for key in others), []).append(row)
        found = []
        for rows in groups.values():
            mean = {key: rows[0][key] for key in others} | {"runs": len(rows)}
            for name in self.numbers:
                values = [row[name] for row in rows if not math.isnan(row.get(name, math.nan))]
                mean[name] = statistics.fmean(values) if values else math.nan
                mean[f"{name} ±"] = statistics.stdev(values) if len(values) > 1 else math.nan
            found.append(mean)
        return found

    @checked
    def curve(self, x: str = "parameters", y: str = LOSS) -> PowerLaw:
        """The power law of y over x through all runs: a scaling curve."""
        points = self._points(x, y)
        return power_law([one[0] for one in points], [one[1] for one in points])

    def _points(self, x: str, y: str) -> list[tuple[float, float]]:
        for name in (x, y):
            known = [*self.numbers, *self.keys]
            if name not in known:
                raise BesagError(f"{quoted(name)} is not a column.{nearest(name, known)} Available: {', '.join(known)}")
        pairs = [(row[x], row[y]) for row in self.rows if row["status"] == "ok" and x in row and y in row]
        if not pairs or any(isinstance(one, str | bool | list | dict) for pair in pairs for one in pair):
            raise BesagError(f"{x!r} and {y!r} are not both numbers in any run, so there is no curve")
        return [(float(across), float(up)) for across, up in pairs if math.isfinite(up)]

    @checked
    def plot(self, x: str = "parameters", y: str = LOSS, ax: Axes | None = None) -> Axes:
        """Every run as a point on logarithmic axes, with the power law where there are three sizes or more."""
        pyplot = require("matplotlib.pyplot", extra="plot")
        points = self._points(x, y)
        if ax is None:
            _, ax = pyplot.subplots(figsize=(6, 4), layout="constrained")
        ax.loglog(*zip(*points, strict=True), "o", color="#2b6cb0", label="runs")
        sizes = sorted({across for across, _ in points})
        if len(sizes) >= LEAST:
            law = self.curve(x, y)
            ax.loglog(sizes, [law(size) for size in sizes], "--", color="#d1495b", label=f"{y} {law.words}")
        ax.set_xlabel(x.replace("_", " "))
        ax.set_ylabel(y.replace("_", " "))
        ax.legend(fontsize=8)
        return ax

    @property
    def facts(self) -> list[str]:
        """What a reader must know."""
        said = [f"{counted(len(self.rows) - len(self.wrong), 'run')} of {len(self.rows)} finished, in {self.folder}"]
        said += [f"left out, since it failed: {name} ({why})" for name, why in self.wrong.items()]
        asks = [key for key in self.keys if key.startswith(OTHER_QUESTIONS)]
        if asks:
            said.append(f"{', '.join(asks)} changes what {LOSS} is about: compare by bits a character and by suites")
        if SEED in self.keys:
            said.append("± is the standard deviation over seeds")
        judged = [row["run"] for row in self.rows if (self.folder / JUDGED / row["run"]).is_dir()]
        if len(judged) > 1:
            first, second = (self.folder / JUDGED / name for name in judged[:2])
            said.append(f"two of them item by item: besag eval compare {first} {second}")
        return said

    def _grids(self) -> Sequence[Grid]:
        means = self.means
        names = [name for name in self.numbers if any(not math.isnan(row[name]) for row in means)]
        keys = [key for key in self.keys if key != SEED]
        lines = []
        for row in means:
            cells = [written(row[key]) for key in keys]
            cells += [_number(row[name], row[f"{name} ±"]) for name in names]
            lines.append(Line([*cells, str(row["runs"])] if SEED in self.keys else cells))
        head = [key.rpartition(".")[2] for key in keys] + [name.replace("_", " ") for name in names]
        return [Grid([*head, "runs"] if SEED in self.keys else head, lines, left=range(len(keys)))]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return dict(json_ready({**self._answers(), "folder": str(self.folder), "rows": list(self.rows)}))

    def to_pandas(self) -> DataFrame:
        """A row for each run."""
        return data.frame(self, list(self.rows))

    def write(self) -> None:
        """DIR/table.tsv, a row for each run."""
        columns = dict.fromkeys(name for row in self.rows for name in row)
        write_rows(self.folder / TABLE, [{name: _cell(row.get(name)) for name in columns} for row in self.rows])


def refuse_unknown_columns(names: Sequence[str], keys: Sequence[str], suites: Sequence[str]) -> None:
    """Reject a name that the table of a sweep over `keys`, evaluated on `suites`, will not have."""
    known = [*SIZES, "seconds", *LOGGED, *suites, *keys]
    for name in names:
        if name not in known:
            raise BesagError(f"{quoted(name)} is not a column.{nearest(name, known)} Available: {', '.join(known)}")


def table(folder: Path, cells: Sequence[Cell], suites: Sequence[str], wrong: Mapping[str, str]) -> Sweep:
    """What the folders of the runs say."""
    keys = tuple(dict.fromkeys(key for cell in cells for key in cell.values))
    rows = []
    for cell in cells:
        there = model_of(folder, cell).is_dir()
        row = {"run": cell.name, "status": "ok" if there else "failed", **cell.values}
        if there:
            row |= _learned(folder / RUNS / cell.name, model_of(folder, cell))
            row |= _judged(folder / JUDGED / cell.name, suites)
        rows.append(row)
    return Sweep(folder, keys, tuple(rows), dict(wrong))


def _learned(run: Path, model: Path) -> dict[str, float]:
    last: dict[str, float] = {}
    for row in logs.read(run):
        last |= row
    size = parameters(model)
    tokens = last.get("tokens", math.nan)
    found = {"parameters": size, "tokens": tokens, "flops": 6 * size * tokens, "seconds": last.get("seconds", math.nan)}
    return found | {name: last[name] for name in LOGGED if name in last}


def parameters(model: Path) -> int:
    """Weights in the files of a network, each that is there once."""
    from safetensors import safe_open

    total = 0
    for path in sorted(model.glob("*.safetensors")):
        with safe_open(path, framework="np") as file:
            total += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    return total


def _judged(folder: Path, suites: Sequence[str]) -> dict[str, float]:
    """The headline of each suite, and its standard error."""
    if not suites or not saved.is_complete(folder):
        return {}
    found: dict[str, float] = {}
    for one in saved.read(folder):
        if one.figures:
            found[one.suite.name] = one.figures[0].value
    return found


def _number(value: float, spread: float) -> str:
    if math.isnan(value):
        return ""
    shown = f"{value:,.0f}" if value == int(value) and abs(value) < 1e12 else f"{value:.4g}"
    return shown if math.isnan(spread) else f"{shown} ± {spread:.2g}"


def _cell(value: Any) -> Any:
    return "" if value is None else value if isinstance(value, int | float | str) else written(value)
