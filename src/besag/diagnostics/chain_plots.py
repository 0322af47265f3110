"""Chains as a picture: their numbers over the steps, how long these remember, and what stands at each place when.

One row for each number: on the left every chain and their mean, on the right the autocorrelation with effective sample
size and R-hat. A number that is 0 or 1 in every step (accepted or not) is drawn as a share over a sliding window. Below
them the tokens of one chain, a line a step, coloured where they are new.

Knows matplotlib, which it imports only when a picture is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from besag.arrays import Floats
from besag.diagnostics import chains
from besag.errors import BesagError, require
from besag.results.plots import COLOURS, GREY, fonts
from besag.results.tables import display_width, raw, wrapped
from besag.results.words import counted, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE, MEAN = "#7c8a99", "#c8603c"
FIRST = ("energy", "log_prob", "changed", "accepted")  # the order of the rows; others come after
QUIET = ("passes",)  # what is spent, not where a chain is
ROW, WIDTH = 1.5, 9.0  # inches
DRAWN = 40  # chains in a panel
SMOOTH = 80  # steps from which counts are drawn as a mean over a sliding window
BARS = 40  # lags from which bars become an area
LINES, LETTERS = 26, 12  # steps of a raster, letters of a token
ACROSS, BANDS = 104, 6  # letters beside one another, and how often a long text is broken
FADES = 4  # lines until a new token has lost its colour


def plot_chain(
    numbers: Mapping[str, ArrayLike],
    *,
    title: str = "",
    tokens: Sequence[Sequence[str]] | None = None,
    steps: Sequence[int] | None = None,
) -> Figure:
    """Numbers of chains, (C, S) each, by name; and `tokens` (K, L) of one chain, kept at `steps` (K,).

    Numbers that never change are named and not drawn; what a chain has no number for any more (nan) is left white.
    """
    found = {name: chains.check(values, name) for name, values in numbers.items()}
    order = sorted((name for name in found if name not in QUIET), key=lambda n: (*FIRST, n).index(n))
    moving = [name for name in order if _moves(found[name])]
    still = [name for name in order if name not in moving]
    if not moving and not tokens:
        told = f": {', '.join(still)} never changed" if still else ""
        raise BesagError(f"there is nothing to draw{told}")
    rasters = _rasters(tokens, steps) if tokens else []
    heights = [ROW] * len(moving) + [0.22 * len(rows) + 0.45 for rows, _ in rasters]
    pyplot = require("matplotlib.pyplot", extra="plot")
    figure: Figure = pyplot.figure(figsize=(WIDTH, sum(heights) + 0.7), layout="constrained")
    grid = figure.add_gridspec(len(heights), 2, width_ratios=[3, 1], height_ratios=heights)
    above: Any = None
    for at, name in enumerate(moving):
        left = figure.add_subplot(grid[at, 0], sharex=above)
        above = above or left
        _trace(left, name, found[name])
        _memory(figure.add_subplot(grid[at, 1]), found[name], at == len(moving) - 1)
        left.tick_params(labelbottom=at == len(moving) - 1)
    if moving:
        left.set_xlabel("step")
    bands = [draw_tokens(figure.add_subplot(grid[at, :]), *raster) for at, raster in enumerate(rasters, len(moving))]
    for ax in bands:  # letters as wide in all of them
        ax.set_xlim(0, max(other.get_xlim()[1] for other in bands))
    if tokens:
        shown, places = sum(len(rows[0]) for rows, _ in rasters), len(tokens[0])
        told = "tokens of one chain, coloured where they are new"
        told += f" · the first {shown} of {places} places" if shown < places else ""
        bands[0].set_title(told, loc="left", fontsize=9, color=GREY)
    _caption(figure, title, found, still)
    return figure


def draw_tokens(ax: Axes, rows: Sequence[Sequence[str]], steps: Sequence[int]) -> Axes:
    """The tokens of one chain, a line for each of some steps: dark where new, fading while they stay."""
    labels = [[_short(token) for token in row] for row in rows]
    edges = np.concatenate([[0.0], np.cumsum(_widths(rows))])  # in letters
    ages = _ages(rows)
    shade = 0.6 * np.clip(1 - ages / FADES, 0, 1)  # (K, L)
    right = max(float(edges[-1]), 0.6 * ACROSS)  # a short text is not stretched over the whole width
    ax.pcolormesh(edges, np.arange(len(rows) + 1), np.ma.masked_equal(shade, 0), cmap=COLOURS, vmin=0, vmax=1,
                  edgecolors="white", linewidth=1.5)  # fmt: skip
    family = fonts()
    size = min(8.5, 72 * (WIDTH - 0.9) / right / 0.66)
    for y, row in enumerate(labels):
        for x, label in enumerate(row):
            ink = "0.1" if ages[y, x] < FADES else "0.4"
            ax.text((edges[x] + edges[x + 1]) / 2, y + 0.52, label, ha="center", va="center", fontsize=size, color=ink,
                    parse_math=False, fontfamily=family)  # fmt: skip
    ax.set_xlim(0, right)
    ax.set_ylim(len(rows), 0)
    ax.set_yticks(np.arange(len(rows)) + 0.5, [f"{step:,}" for step in steps], fontsize=7.5)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_ylabel("step", fontsize=9)
    return ax


# ---- the rows


def _trace(ax: Axes, name: str, values: Floats) -> None:
    """Every chain, and the mean of those that still have a number."""
    label = name.replace("_", " ")
    window, share = max(1, values.shape[1] // 40), _is_share(values)
    if share or (values.shape[1] >= SMOOTH and _is_count(values)):
        values, label = _sliding(values, window), label + (" (share)" if share else f"\n(mean of {window} steps)")
    if share:
        ax.set_ylim(-0.03, 1.03)
    step = np.arange(1, values.shape[1] + 1)
    shown = values[:: math.ceil(len(values) / DRAWN)]
    faint = max(0.2, min(1.0, 4 / len(shown)))
    ax.plot(step, shown.T, color=LINE, linewidth=0.8, alpha=faint)
    if len(values) > 1:
        known = np.isfinite(values)
        count = known.sum(0)
        mean = np.where(known, values, 0).sum(0)[count > 0] / count[count > 0]
        ax.plot(step[count > 0], mean, color=MEAN, linewidth=1.4)
    ax.set_xlim(1, max(2, values.shape[1]))
    ax.xaxis.set_major_locator(_whole_numbers(8))
    ax.set_ylabel(label, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)


def _memory(ax: Axes, values: Floats, last: bool) -> None:
    """The autocorrelation as bars, up to where it has died out or a third of the steps."""
    line = chains.line("", values)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    if line.reason and line.time != line.time:
        ax.set_axis_off()
        ax.text(0.5, 0.5, line.reason, ha="center", va="center", color=GREY, fontsize=8, transform=ax.transAxes)
        return
    most = int(min(max(12, 6 * line.time), values.shape[1] / 3 + 1))
    rho = chains.autocorrelation(values, most)
    ax.axhline(0, color="0.85", linewidth=0.8, zorder=0)
    if len(rho) <= BARS:
        ax.bar(np.arange(len(rho)), rho, width=0.8, color=MEAN, alpha=0.75)
    else:
        ax.fill_between(np.arange(len(rho)), rho, color=MEAN, alpha=0.75, linewidth=0)
    ax.set_xlim(-0.7, len(rho) - 0.3)
    ax.xaxis.set_major_locator(_whole_numbers(4))
    ax.set_ylim(min(-0.1, float(rho.min()) * 1.1), 1.05)
    told = f"ESS {line.ess_bulk:,.0f} · R-hat {number(line.rhat)}"
    ax.set_title(told, fontsize=8, color=GREY, loc="left")
    if last:
        ax.set_xlabel("lag (autocorrelation)", fontsize=9)


def _whole_numbers(most: int) -> Any:
    return require("matplotlib.ticker", extra="plot").MaxNLocator(nbins=most, integer=True, steps=[1, 2, 5, 10])


def _caption(figure: Figure, title: str, found: Mapping[str, Floats], still: Sequence[str]) -> None:
    facts = [title] if title else []
    if found:
        count, steps = max(values.shape for values in found.values())
        facts += [counted(count, "chain"), counted(steps, "step")]
        if count > 1:
            facts.append("grey: each chain, red: their mean")
    if still:
        facts.append(f"never changed: {', '.join(still)}")
    if facts:
        figure.suptitle(wrapped(facts, 110), x=0.01, ha="left", fontsize=9, color=GREY, parse_math=False,
                        fontfamily=fonts())  # fmt: skip


# ---- numbers


def _moves(values: Floats) -> bool:
    known = values[np.isfinite(values)]
    return len(known) > 1 and values.shape[1] > 1 and bool((known != known[0]).any())


def _is_share(values: Floats) -> bool:
    return bool(np.isin(values[np.isfinite(values)], (0.0, 1.0)).all())


def _is_count(values: Floats) -> bool:
    known = values[np.isfinite(values)]
    return bool((known == known.round()).all())


def _sliding(values: Floats, window: int) -> Floats:
    """The mean over the last `window` steps of each chain; what is not known counts as nothing."""
    known = np.isfinite(values)
    total, count = (np.cumsum(part, 1) for part in (np.where(known, values, 0.0), known.astype(np.float64)))
    total[:, window:] -= total[:, :-window].copy()
    count[:, window:] -= count[:, :-window].copy()
    return np.where(known & (count > 0), total / np.maximum(count, 1), np.nan)


def _rasters(tokens: Sequence[Sequence[str]], steps: Sequence[int] | None) -> list[tuple[list[list[str]], list[int]]]:
    """As many lines as can be read, evenly, the first and the last among them; a long text broken into bands."""
    rows = [list(row) for row in tokens]
    numbers = list(range(len(rows))) if steps is None else [int(step) for step in steps]
    if len({len(row) for row in rows}) != 1 or not rows[0] or len(numbers) != len(rows):
        raise BesagError("tokens of one chain are K lines of L tokens each, with one step a line")
    cuts, used = [0], 0.0
    for at, width in enumerate(_widths(rows)):
        if used + width > ACROSS:
            cuts.append(at)
            used = 0.0
        used += width
    ends = [*cuts[1:], len(rows[0])][:BANDS]
    lines = min(len(rows), max(8, LINES // len(ends)))
    kept = np.unique(np.linspace(0, len(rows) - 1, lines).round().astype(int)).tolist()
    bands = zip(cuts, ends, strict=False)
    return [([rows[at][start:end] for at in kept], [numbers[at] for at in kept]) for start, end in bands]


def _widths(rows: Sequence[Sequence[str]]) -> list[float]:
    """(L,) of the column of each place, in letters."""
    return [max(display_width(_short(row[at])) for row in rows) + 1.6 for at in range(len(rows[0]))]


def _ages(rows: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """(K, L) for how many lines each token has stood there; what stood there from the start is old."""
    ages = np.full((len(rows), len(rows[0])), float(FADES))
    for at in range(1, len(rows)):
        same = np.array([new == old for new, old in zip(rows[at], rows[at - 1], strict=True)])
        ages[at] = np.where(same, ages[at - 1] + 1, 0)
    return ages


def _short(token: str) -> str:
    shown = raw(token).strip("␣") or raw(token)
    return shown if len(shown) <= LETTERS else shown[: LETTERS - 1] + "…"
