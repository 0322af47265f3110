"""A study as a picture: how well each construction predicts two tokens, by how far apart they stand.

Knows matplotlib, which it imports only when a picture is drawn. Above, the mean P-NLL; below, what a construction gains
over the independent MLM on the same pairs; bands are bootstrap intervals by text. All pairs of the study are pooled,
and distances too, by powers of two, where there are many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from besag.errors import require
from besag.results.plots import GREY
from besag.statistics import Interval, intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from besag.study.pairs import PairRow
    from besag.study.report import Report

MOST_TICKS = 8  # distances that have a tick of their own; more are pooled
FEWEST = 10  # pairs of a distance that is drawn beside one of many
BASELINE = "mlm"
STYLES = {  # colour, line, width: kin in one hue, what the paper recommends in front
    "mlm": ("0.25", "-", 2.0),
    "order": ("#2b6cb0", "-", 1.6), "order a→b": ("#63a4dc", ":", 1.6), "order b→a": ("#63a4dc", "--", 1.4),
    "mrf": ("#b08968", "-", 1.4), "mrf_local": ("#b08968", "--", 1.4),
    "hcb": ("#5a9367", "-", 1.6), "loglinear": ("#00798c", "-", 1.8),
    "ag": ("#d1495b", "-", 2.6), "ag marginal": ("#d1495b", "--", 2.2),
    "stationary": ("#7b4fa3", "-", 1.8),
}  # fmt: skip
OTHERS = ("#edae49", "#66a182", "#8d96a3", "#3d405b")


def draw(report: Report) -> Figure:
    pyplot = require("matplotlib.pyplot", extra="plot")
    bins = _bins(sorted({row.distance for row in report.measured}))
    members = [[row for row in report.measured if low <= row.distance <= high] for low, high in bins]
    enough = min(FEWEST, max(map(len, members)) / 20)  # a mean over a few pairs would set the scale for all others
    bins = [one for one, rows in zip(bins, members, strict=True) if len(rows) >= enough]
    members = [rows for rows in members if len(rows) >= enough]
    compared = BASELINE in report.constructions
    figure: Figure
    figure, panels = pyplot.subplots(
        1 + compared, 1, figsize=(8.2, 7.4 if compared else 4.2), layout="constrained", sharex=True, squeeze=False
    )
    others = iter(OTHERS * len(report.constructions))
    styles = {name: STYLES.get(name) or (next(others), "-", 1.6) for name in report.constructions}
    top = panels[0, 0]
    for name in report.constructions:
        found = [_mean(report.values("pair_nll", name, rows), rows) for rows in members]
        _line(top, found, name, *styles[name])
    top.set_ylabel("mean P-NLL (nats a token)")
    top.set_title(_caption(report), loc="left", fontsize=9, color=GREY, parse_math=False)
    if compared:
        _gains(panels[1, 0], report, members, styles)
    bottom = panels[-1, 0]
    counts = [f"{low}" if low == high else f"{low}–{high}" for low, high in bins]
    ticks = [f"{name}\nn = {len(rows):,}" for name, rows in zip(counts, members, strict=True)]
    bottom.set_xticks(range(len(bins)), ticks)
    bottom.set_xlim(-0.3, len(bins) - 0.7)
    bottom.set_xlabel("distance of the two places (tokens)")
    for panel in panels[:, 0]:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="0.92", linewidth=0.8)
        panel.set_axisbelow(True)
    figure.legend(
        *top.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9.5, handlelength=3
    )
    return figure


def _gains(
    ax: Axes, report: Report, members: Sequence[Sequence[PairRow]], styles: dict[str, tuple[str, str, float]]
) -> None:
    """Gains over the baseline. The scale is that of the gains, so a construction that loses much leaves the panel."""
    best, means = 0.02, {}
    for name in report.constructions:
        gains = [report.values("pair_nll", BASELINE, rows) - report.values("pair_nll", name, rows) for rows in members]
        found = [_mean(gain, rows) for gain, rows in zip(gains, members, strict=True)]
        means[name] = [one.value for one in found]
        best = max([best, *(one.high for one in found if math.isfinite(one.high)), *means[name]])
        if name == BASELINE:
            ax.axhline(0.0, color=styles[name][0], linewidth=styles[name][2])
        else:
            _line(ax, found, name, *styles[name])
    bottom = -1.1 * best
    ax.set_ylim(max(bottom, ax.get_ylim()[0]), 1.08 * best)
    below = [name for name, values in means.items() if min(values) < bottom]
    if below:
        said = f"below the panel in part: {', '.join(below)}"
        ax.text(0.99, 0.02, said, transform=ax.transAxes, ha="right", va="bottom", fontsize=8.5, color=GREY)
    ax.set_ylabel(f"gain over {BASELINE} (nats a token)")


def _line(ax: Axes, found: Sequence[Interval], name: str, colour: str, line: str, width: float) -> None:
    x, (value, low, high) = np.arange(len(found)), np.array(found).T
    ax.plot(x, value, line, color=colour, linewidth=width, marker="o", markersize=2.2 + width, label=name)
    known = np.isfinite(low) & np.isfinite(high)
    if len(found) > 1:
        ax.fill_between(
            x, low, high, where=known.tolist(), color=colour, alpha=0.12 if width >= 2 else 0.05, linewidth=0
        )
    elif known.all():
        ax.errorbar(x, value, [value - low, high - value], color=colour, capsize=3, linewidth=1)


def _mean(values: NDArray[np.float64], rows: Sequence[PairRow]) -> Interval:
    return intervals(values, [row.text for row in rows])[0]


def _bins(distances: Sequence[int]) -> list[tuple[int, int]]:
    """Each distance, or 1, 2, 3–4, 5–8, 9–16 …"""
    if len(distances) <= MOST_TICKS:
        return [(distance, distance) for distance in distances]
    found = [(1, 1)] + [(2**power // 2 + 1, 2**power) for power in range(1, distances[-1].bit_length() + 1)]
    return [(low, high) for low, high in found if any(low <= distance <= high for distance in distances)]


def _caption(report: Report) -> str:
    texts = len({row.text for row in report.measured})
    said = [str(report.settings[name]) for name in ("model", "dtype") if name in report.settings]
    return " · ".join([f"{len(report.measured):,} pairs of {texts:,} texts", ", ".join(report.kinds), *said])
