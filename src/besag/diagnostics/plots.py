"""Diagnostics as pictures: the two odds ratios of each minor, and how much every two tokens depend on each other.

Knows matplotlib, which it imports only when a picture is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.diagnostics import show
from besag.errors import quoted, require
from besag.results.plots import COLOURS, GREY, caption, fonts
from besag.results.tables import raw, visible
from besag.results.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from besag.diagnostics.dependence import DependenceMap
    from besag.diagnostics.rectangle import Rectangles

POINT = "#c8603c"
LONGEST = 14  # letters of a token
NOTED = 3  # strongest pairs whose numbers are written into their cells


def rectangles(found: Rectangles, ax: Axes | None) -> Axes:
    if ax is None:
        _, ax = require("matplotlib.pyplot", extra="plot").subplots(figsize=(5.2, 5.4), layout="constrained")
    reach = 1.08 * float(max(np.abs(found.log_odds_a).max(), np.abs(found.log_odds_b).max(), 0.1))
    ax.axhline(0, color="0.88", linewidth=0.8, zorder=0)
    ax.axvline(0, color="0.88", linewidth=0.8, zorder=0)
    ax.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=1, zorder=1)
    ax.annotate("a joint", (0.93 * reach, 0.93 * reach), xytext=(-6, 4), textcoords="offset points", ha="right",
                va="bottom", rotation=45, rotation_mode="anchor", color=GREY, fontsize=9)  # fmt: skip
    shade = max(0.15, min(0.7, 60 / len(found.deviations)))
    ax.scatter(found.log_odds_a, found.log_odds_b, s=22, color=POINT, alpha=shade, linewidth=0, zorder=2)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_xlabel("log odds ratio from p(a | b) (nats)")
    ax.set_ylabel("log odds ratio from p(b | a) (nats)")
    facts = [
        show.rectangles_where(found),
        f"{len(found.deviations):,} minors",
        f"mean |D| {number(found.mean)}",
        f"correlation {number(found.correlation)}",
        found.model,
    ]
    caption(ax, [quoted(found.text), *facts], 62)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def dependence(found: DependenceMap, ax: Axes | None) -> Axes:
    """The lower triangle: each token with those before it."""
    n = len(found.tokens)
    side = _side(n)
    if ax is None:
        _, ax = require("matplotlib.pyplot", extra="plot").subplots(
            figsize=(side + 2.0, side + 1.0), layout="constrained"
        )
    lower = np.where(np.tri(n, k=-1, dtype=bool), found.matrix, np.nan)  # (n, n)
    most = float(np.nanmax(found.matrix))
    image = ax.imshow(lower[1:, :-1], cmap=COLOURS, vmin=0.0, vmax=max(most, 1e-3), aspect="equal")
    for i, j in np.argwhere(np.isfinite(lower)).tolist():  # a quiet grid of the cells that exist
        ax.add_patch(_frame(j, i - 1))
    for pair in found.top(NOTED if n <= 24 else 0):
        i, j = found.positions.index(pair.b), found.positions.index(pair.a)
        ink = "white" if pair.mutual_information > 0.55 * most else "0.2"
        value = (
            f"{pair.mutual_information:.2f}".lstrip("0")
            if pair.mutual_information < 1
            else f"{pair.mutual_information:.1f}"
        )
        ax.text(j, i - 1, value, ha="center", va="center", fontsize=7.5, color=ink)
    size = 10.0 if n <= 30 else max(5.0, 300 / n)
    labels = _labels(found)
    style: dict[str, Any] = {"fontsize": size, "parse_math": False, "fontfamily": fonts()}
    ax.set_yticks(range(n - 1), labels[1:], **style)
    ax.set_xticks(range(n - 1), labels[:-1], rotation=45, ha="right", rotation_mode="anchor", **style)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.5, aspect=18, pad=0.02, anchor=(0.0, 1.0))
    bar.outline.set_visible(False)
    bar.set_label("mutual information (nats)", fontsize=9)
    bar.ax.tick_params(labelsize=9, length=2)
    caption(ax, [quoted(found.text), *found.facts], int(13 * (side + 1)))
    return ax


def together(tested: Rectangles, found: DependenceMap | None) -> Figure:
    """The minors, and beside them the map where there is one."""
    pyplot = require("matplotlib.pyplot", extra="plot")
    wide = [5.2] if found is None else [5.2, _side(len(found.tokens)) + 2.0]
    figure: Figure = pyplot.figure(figsize=(sum(wide), max(5.6, wide[-1] - 0.6)), layout="constrained")
    left, *right = figure.subplots(1, len(wide), width_ratios=wide, squeeze=False)[0]
    rectangles(tested, left)
    if found is not None:
        dependence(found, right[0])
    return figure


def _side(n: int) -> float:
    """Inches of a map of n tokens."""
    return min(max(3.2, 0.36 * n), 14.0)


def _frame(x: int, y: int) -> Any:
    patches = require("matplotlib.patches", extra="plot")
    return patches.Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=1.2)


def _labels(found: DependenceMap) -> list[str]:
    """The text that a token covers, or its raw form where it covers none."""
    shown = []
    for token, (start, end) in zip(found.tokens, found.offsets.tolist(), strict=True):
        text = visible(found.text[start:end]) if start < end else raw(token)
        shown.append(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
    return shown
