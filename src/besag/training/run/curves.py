"""The curves of one run or of several, as a picture, and its loss as one line of text.

Reads logs, and knows matplotlib, which is imported only when something is drawn. Losses stand on a logarithmic axis of
tokens read: a run learns most in its first hundredth, and runs of different batches compare. Held-out numbers and
minimal pairs have panels of their own where a log has them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.errors import BesagError, quoted, require
from besag.files.whole import whole
from besag.training.run import logs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "curves.png"
BARS = "▁▂▃▄▅▆▇█"
COLOURS = ("#2b6cb0", "#d1495b", "#5a9367", "#7b4fa3", "#b08968", "#00798c", "#edae49", "0.35")
STYLES = ("-", "--", ":", "-.")
GREY = "0.4"
AXES = {"tokens": "tokens read", "step": "steps", "seconds": "seconds of training"}
MOST_POINTS = 2000  # of one line; more are averaged in equal parts of the axis
COMPATIBILITY = ("rectangle_deviation", "rectangle_dependence", "mutual_information")
WIDE = 30.0  # values that differ by such a factor stand on a logarithmic axis
SHARE = 0.01  # of a run's time that live drawing may take
SECONDS = 20.0  # between two live drawings, at least


class Panel(NamedTuple):
    """One pair of axes: which numbers of a log it shows."""

    title: str
    keys: tuple[str, ...]
    percent: bool = False


class Series(NamedTuple):
    x: Floats  # (N,)
    y: Floats  # (N,)


# ---- what is drawn


def series(rows: Sequence[Mapping[str, float]], key: str, axis: str = "tokens") -> Series:
    """One number of a log against an axis; lines without the axis stand at the place their step has elsewhere."""
    known = {row["step"]: row[axis] for row in rows if axis in row}
    steps = sorted(known)
    points = []
    for row in rows:
        if key in row and (axis in row or steps):
            at = row[axis] if axis in row else float(np.interp(row["step"], steps, [known[step] for step in steps]))
            points.append((at, row[key]))
    x, y = np.array(points, dtype=np.float64).reshape(-1, 2).T
    return Series(x, y)


def thinned(line: Series, bins: int, logarithmic: bool) -> Series:
    """Means over at most `bins` equal parts of the axis; a part that holds nothing but nan is left out."""
    good = np.isfinite(line.y) & ((line.x > 0) | (not logarithmic))
    x, y = line.x[good], line.y[good]
    if len(x) <= bins:
        return Series(x, y)
    scale = np.log(x) if logarithmic else x
    width = max(scale.max() - scale.min(), 1e-12)
    part = np.minimum(((scale - scale.min()) / width * bins).astype(int), bins - 1)
    count = np.bincount(part, minlength=bins)
    held = count > 0
    return Series(*(np.bincount(part, values, minlength=bins)[held] / count[held] for values in (x, y)))


def panels(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Panel]:
    """The loss first, then the learning rate, then every evaluation number there is."""
    names = dict.fromkeys(name for rows in runs.values() for row in rows for name in row)
    evaluated = [name for name in names if name not in logs.TRAINING]
    losses = [name for name in evaluated if name.endswith("loss")]
    shares = [name for name in evaluated if "minimal_pairs" in name or name.endswith("accuracy")]
    fit = [name for name in evaluated if name in COMPATIBILITY]
    found = [Panel("loss (nats a predicted token)", ("loss", *losses))]
    found += [Panel("learning rate", ("lr",))] if "lr" in names else []
    found += [Panel("minimal pairs (%)", tuple(shares), percent=True)] if shares else []
    if fit and len(runs) == 1:
        found.append(Panel("compatibility of neighbours (nats)", tuple(fit)))
    else:  # several runs have several colours: one number a panel
        found += [Panel(_words(name), (name,)) for name in fit]
    found += [Panel(_words(name), (name,)) for name in evaluated if name not in (*losses, *shares, *fit)]
    return found


def draw(runs: Mapping[str, Sequence[Mapping[str, float]]], axis: str = "tokens") -> Figure:
    """A figure of the logs (as `logs.read` gives them) of some runs, by name."""
    if axis not in AXES:
        raise BesagError(f"{axis!r} is no axis of a log: {', '.join(AXES)}")
    empty = [name for name, rows in runs.items() if not any("loss" in row for row in rows)]
    if empty or not runs:
        raise BesagError(f"nothing is logged yet in {', '.join(empty) or 'no run at all'}: there is no loss to draw")
    figures: Any = require("matplotlib.figure", extra="plot")
    wanted = panels(runs)
    small = len(wanted) - 1
    across = 2 if small in (2, 4) else min(max(small, 1), 3)
    rows, wide = math.ceil(small / across), 6 // across
    figure: Figure = figures.Figure(figsize=(10, 4.6 + 2.3 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, 6, height_ratios=[2.0] + [1.0] * rows)
    places = [(0, slice(0, 6))]
    for number in range(small):
        row, column = divmod(number, across)
        places.append((1 + row, slice(wide * column, wide * (column + 1))))
    for number, (panel, place) in enumerate(zip(wanted, places, strict=True)):
        ax = figure.add_subplot(grid[place])
        _panel(ax, panel, runs, axis, logarithmic=number == 0)
    return figure


def _panel(
    ax: Axes, panel: Panel, runs: Mapping[str, Sequence[Mapping[str, float]]], axis: str, logarithmic: bool
) -> None:
    several = len(runs) > 1
    for index, (name, rows) in enumerate(runs.items()):
        for number, key in enumerate(panel.keys):
            line = series(rows, key, axis)
            line = line._replace(y=100 * line.y) if panel.percent else line
            colour = COLOURS[(index if several else number) % len(COLOURS)]
            if key == "loss":
                ax.plot(*thinned(line, MOST_POINTS, logarithmic), color=colour, alpha=0.22, linewidth=0.8)
                label = name if several else "training"
                ax.plot(*thinned(line, 80, logarithmic), color=colour, linewidth=1.8, label=label)
            elif len(line.x):
                marked = "o" if key != "lr" and len(line.x) <= 60 else ""
                style = STYLES[number % len(STYLES)] if several else "-"
                label = "" if several else _words(key)
                drawn = thinned(line, MOST_POINTS, logarithmic)
                ax.plot(*drawn, style, color=colour, linewidth=1.6, marker=marked, markersize=3.5, label=label)
    if several and len(panel.keys) > 1:  # colours are runs, and styles are numbers
        for number, key in enumerate(panel.keys[1:], 1):
            ax.plot([], [], STYLES[number % len(STYLES)], color=GREY, linewidth=1.6, label=_words(key))
    if logarithmic:
        ax.set_xscale("log")
    if len(panel.keys) > 1 or (several and logarithmic):
        ax.legend(frameon=False, fontsize=9 if logarithmic else 8, ncols=2 if len(runs) > 6 else 1)
    ax.set_title(panel.title, loc="left", fontsize=10, color=GREY, parse_math=False)
    ax.set_xlabel(AXES[axis], fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8.5)
    if not logarithmic:
        ax.set_xlim(left=0)
        ax.xaxis.set_major_formatter(require("matplotlib.ticker", extra="plot").EngFormatter(sep=""))  # 20M, not 2·10⁷
    values = np.array([value for line in ax.lines for value in np.asarray(line.get_ydata(), dtype=np.float64)])
    if panel.keys != ("lr",) and len(values) and values.min() > 0 and values.max() > WIDE * values.min():
        ax.set_yscale("log")
    if panel.keys == ("lr",):
        ax.set_ylim(bottom=0)


def _words(key: str) -> str:
    return key.replace("_", " ").replace("heldout", "held-out")


# ---- where it goes


def check_format(path: str | Path) -> None:
    """Is the ending of a name that of a picture? Asked before anything is drawn."""
    known = require("matplotlib.figure", extra="plot").Figure().canvas.get_supported_filetypes()
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in known:
        raise BesagError(
            f"{quoted(str(path))} is no picture: its name must end in {', '.join(f'.{one}' for one in known)}"
        )


def save(figure: Figure, path: str | Path) -> None:
    """Write a picture so that whoever looks sees the old one or the new one, whole."""
    with whole(path) as draft:
        figure.savefig(draft, dpi=120)


class Live:
    """OUTPUT/curves.png, drawn anew now and then while a run goes; never for more than `SHARE` of the time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._wait = self._least = seconds
        self._last = time.monotonic()

    def __call__(self, folder: Path) -> bool:
        """Draw if it is time to: was it?"""
        if time.monotonic() - self._last < self._wait:
            return False
        begun = time.monotonic()
        drawn = picture(folder)
        self._last = time.monotonic()
        self._wait = max(self._least, (self._last - begun) / SHARE) if drawn else math.inf
        return drawn


def picture(folder: str | Path) -> bool:
    """Draw OUTPUT/curves.png from the log; False where there is no matplotlib, or nothing to draw."""
    try:
        save(draw({Path(folder).name: logs.read(folder)}), Path(folder) / NAME)
    except BesagError:  # a picture is no reason to stop a run
        return False
    return True


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """A curve as one line of text. The axis is logarithmic: each letter is the mean of a part of it.

    >>> sparkline([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], 8)
    '█▇▆▅▄▃▂▁'
    """
    finite = np.array([value for value in values if math.isfinite(value)])
    if not len(finite):
        return ""
    steps = np.arange(1, len(finite) + 1, dtype=np.float64)
    means = finite if len(finite) <= width else thinned(Series(steps, finite), width, logarithmic=True).y
    low, high = means.min(), means.max()
    level = (means - low) / (high - low) if high > low else np.zeros(len(means))
    return "".join(BARS[round(part * (len(BARS) - 1))] for part in level.tolist())
