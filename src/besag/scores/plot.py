"""A score as a picture: a line over the tokens, or the text itself in colours.

Knows matplotlib, which it imports only when a picture is drawn. Refuses to know anything about fonts beyond which of a
few wide-coverage ones are installed, so that letters missing from the default font are drawn where possible.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import BesagError, nearest, quoted, require
from besag.results.plots import COLOURS, caption, fonts
from besag.results.tables import display_width, is_right_to_left, visible
from besag.scores import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from besag.scores.score import Score

MARGIN = 0.15  # inches around a figure made here
BAR = 0.75  # inches below the text for the colour bar with its ticks and label
LEAST_SCALE = 8.0  # bits: the colours of a text without surprises stay pale


def draw(score: Score, ax: Axes | None, kind: str) -> Axes:
    """Draw a score on `ax`, or on a new figure of fitting size."""
    kinds = {"line": line, "text": text}
    if kind not in kinds:
        raise BesagError(f"kind={kind!r} is not 'line' or 'text'.{nearest(kind, kinds)}")
    if score.status != "ok":
        raise BesagError(f"{quoted(score.text)} has nothing to plot, {show.reason(score)}")
    return kinds[kind](score, ax)


def line(score: Score, ax: Axes | None) -> Axes:
    """Surprisal over the tokens; bands of grey tell the words apart."""
    n, size = len(score), 10.0
    if ax is None:
        pyplot = require("matplotlib.pyplot", extra="plot")
        _, ax = pyplot.subplots(figsize=(min(max(6.0, 0.34 * n + 1.2), 16.0), 3.4), layout="constrained")
    surprisals = score.surprisals  # (n,)
    for k, (_, group) in enumerate(groupby(range(n), key=score.words.tolist().__getitem__)):
        places = list(group)
        if k % 2:
            ax.axvspan(places[0] - 0.5, places[-1] + 0.5, color="0.5", alpha=0.12, linewidth=0, zorder=0)
    ax.plot(np.arange(n), surprisals, marker="o", markersize=4.5, linewidth=1.3)
    for i in np.flatnonzero(np.isinf(surprisals)):
        ax.annotate("∞", (i, 1.0), xycoords=ax.get_xaxis_transform(), ha="center", va="top", fontsize=size)
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(bottom=min(0.0, float(surprisals.min())))
    ax.set_ylabel(f"surprisal ({score.unit})")
    ax.spines[["top", "right"]].set_visible(False)

    room = _inches(ax)[0] / n  # for each token
    labels = [token if len(token) <= 20 else token[:19] + "…" for token in show.labels(score)]
    widest = max(map(display_width, labels)) * 0.65 * size / 72
    every = math.ceil(1.25 * size / 72 / room)
    level = widest <= room
    ax.set_xticks(np.arange(0, n, every), labels[::every], fontsize=size, parse_math=False, fontfamily=fonts())
    if not level:
        angle = 45 if room > 0.24 else 90
        for label in ax.get_xticklabels():
            label.set(rotation=angle, ha="right", va="center", rotation_mode="anchor")
    ax.tick_params(axis="x", length=0 if every == 1 else 3, pad=4 if level else 7)
    caption(ax, score.facts)
    return ax


def text(score: Score, ax: Axes | None) -> Axes:
    """The text itself, each token on the colour of its surprisal, wrapped to the width of the axes."""
    matplotlib = require("matplotlib", extra="plot")
    offsetbox, cm, colors = (require(f"matplotlib.{part}", extra="plot") for part in ("offsetbox", "cm", "colors"))
    size, own = 13.0, None
    if ax is None:
        own = require("matplotlib.pyplot", extra="plot").figure(figsize=(8.0, 4.0))
        ax = own.add_axes((MARGIN / 8, 0.1, 1 - 2 * MARGIN / 8, 0.8))
    ax.set_axis_off()
    width, height = _inches(ax)
    pieces = show.segments(score)
    lines = _lines(pieces, _ruler(ax, size), width * 72)
    while own is None and size > 5 and len(lines) * 2 * size > (height - BAR) * 72:
        size -= 0.5
        lines = _lines(pieces, _ruler(ax, size), width * 72)
    top = 0.2 + 0.15 * caption(ax, score.facts)
    if own is not None:
        height = len(lines) * 2 * size / 72 + BAR
        figure_height = height + top + MARGIN
        own.set_size_inches(8.0, figure_height)
        ax.set_position((MARGIN / 8, MARGIN / figure_height, 1 - 2 * MARGIN / 8, height / figure_height))

    sums = [float(score.surprisals[list(piece.tokens)].sum()) for piece in pieces]
    most = max(*(s for s in sums if math.isfinite(s)), LEAST_SCALE / math.log2(score.base), 0.0)
    scale = cm.ScalarMappable(colors.Normalize(0.0, most), matplotlib.colormaps[COLOURS])
    canvas = offsetbox.DrawingArea(width * 72, len(lines) * 2 * size)  # in points, whatever the resolution
    ruler, right_to_left = _ruler(ax, size), bool(is_right_to_left(score.text))
    for row, entries in enumerate(lines):
        order = _visual_order([pieces[i].text for i in entries], right_to_left)
        widths = [ruler(pieces[entries[j]].text) for j in order]
        x = width * 72 - sum(widths) if right_to_left else 0.0
        for j, w in zip(order, widths, strict=True):
            piece = pieces[entries[j]]
            if piece.tokens:
                colour = scale.to_rgba(sums[entries[j]])
                _box(canvas, visible(piece.text), x, (len(lines) - 1 - row + 0.5) * 2 * size, w, size, colour)
            x += w
    ax.add_artist(offsetbox.AnchoredOffsetbox("upper left", child=canvas, pad=0, borderpad=0, frameon=False))
    bar = ax.inset_axes((0.0, 0.5 / height, min(1.0, 2.6 / width), 0.1 / height))
    ax.figure.colorbar(scale, cax=bar, orientation="horizontal").outline.set_visible(False)
    bar.set_xlabel(f"surprisal ({score.unit})", fontsize=9)
    bar.tick_params(labelsize=9)
    return ax


def _box(canvas: Any, content: str, x: float, y: float, width: float, size: float, colour: tuple[float, ...]) -> None:
    """One token: letters centred on a coloured box, dark or light as the box asks."""
    patches, texts = (require(f"matplotlib.{part}", extra="plot") for part in ("patches", "text"))
    red, green, blue, _ = colour
    ink = "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
    box = patches.FancyBboxPatch((x + 0.6, y - 0.75 * size), max(width - 1.2, 0.1), 1.5 * size, facecolor=colour,
                                 edgecolor="none", boxstyle="round,pad=0,rounding_size=2")  # fmt: skip
    canvas.add_artist(box)
    canvas.add_artist(texts.Text(x + width / 2, y - 0.36 * size, content, ha="center", va="baseline", fontsize=size,
                                 color=ink, parse_math=False, fontfamily=fonts()))  # fmt: skip


def _lines(pieces: Sequence[show.Segment], ruler: Callable[[str], float], room: float) -> list[list[int]]:
    """Which segments stand on which line: broken at white space, or anywhere where none comes in time."""
    lines, used = [list[int]()], 0.0
    chunks = [list(chunk) for _, chunk in groupby(range(len(pieces)), key=lambda i: bool(pieces[i].tokens))]
    for chunk in chunks:
        blank = not pieces[chunk[0]].tokens and pieces[chunk[0]].text.isspace()
        if blank and "\n" in pieces[chunk[0]].text:
            lines.append([])
            used = 0.0
            continue
        widths = [ruler(pieces[i].text) for i in chunk]
        if used and sum(widths) <= room < used + sum(widths):  # fits on a line of its own
            lines.append([])
            used = 0.0
            if blank:
                continue
        for i, w in zip(chunk, widths, strict=True):
            if used and used + w > room:
                lines.append([])
                used = 0.0
            lines[-1].append(i)
            used += w
    return lines


def _visual_order(texts: Sequence[str], right_to_left: bool) -> list[int]:
    """The order of segments from left to right: runs against the line's direction are turned, as readers expect.

    A segment without a direction (white space, digits, signs) goes with its neighbours where both agree, else with
    the line.
    """
    known = [is_right_to_left(t) for t in texts]
    turned = []
    for i, direction in enumerate(known):
        before = next((d for d in known[i::-1] if d is not None), right_to_left)
        after = next((d for d in known[i:] if d is not None), right_to_left)
        turned.append((before if before == after else right_to_left) if direction is None else direction)
    runs = [list(run) for _, run in groupby(range(len(texts)), key=turned.__getitem__)]
    ordered = [run[::-1] if turned[run[0]] else run for run in runs]
    return [i for run in (ordered[::-1] if right_to_left else ordered) for i in run]


def _ruler(ax: Axes, size: float) -> Callable[[str], float]:
    """Measures how many points wide a text is drawn."""
    known: dict[str, float] = {}

    def width(content: str) -> float:
        if content not in known:
            shown = visible(content) if content.strip() else " "
            # Between marks, because a text's own extent leaves out white space at its ends.
            known[content] = extent(f"|{shown}|") - extent("||") + (2.4 if content.strip() else 0.0)
        return known[content]

    def extent(content: str) -> float:
        probe = ax.text(0, 0, content, fontsize=size, parse_math=False, fontfamily=fonts())
        with warnings.catch_warnings():  # that a glyph is missing is said when the picture is drawn, once
            warnings.filterwarnings("ignore", message="Glyph")
            points = probe.get_window_extent().width * 72 / ax.figure.dpi
        probe.remove()
        return points

    return width


def _inches(ax: Axes) -> tuple[float, float]:
    extent = ax.get_window_extent()
    return extent.width / ax.figure.dpi, extent.height / ax.figure.dpi
