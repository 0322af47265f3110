"""What pictures share: colours, captions, bars, fonts for letters that the usual one lacks. Imports matplotlib late."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from besag.errors import require
from besag.results.tables import visible, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = "OrRd"
GREY = "0.4"
BARS = "#d9856a", "#8a8a8a"
LONGEST = 48  # letters of a label
WIDE_COVERAGE = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Source Han Sans", "Noto Sans Arabic", "Noto Sans Hebrew",
                 "Noto Sans Devanagari", "Noto Emoji", "Symbola", "Arial Unicode MS", "Segoe UI Emoji", "Yu Gothic",
                 "Microsoft YaHei", "Hiragino Sans", "PingFang SC")  # fmt: skip


def fonts() -> list[str]:
    """The reader's own font first, then those installed that know more letters."""
    matplotlib = require("matplotlib", extra="plot")
    installed = set(require("matplotlib.font_manager", extra="plot").fontManager.get_font_names())
    return [*matplotlib.rcParams["font.family"], *(name for name in WIDE_COVERAGE if name in installed)]


def bars(ax: Axes | None, labels: Sequence[str], shares: Iterable[float], axis: str, facts: Sequence[str]) -> Axes:
    """A bar for each label, the first on top, with its percentage; the facts above."""
    shares = list(shares)
    if ax is None:
        pyplot = require("matplotlib.pyplot", extra="plot")
        _, ax = pyplot.subplots(figsize=(6.4, 1.4 + 0.34 * len(shares)), layout="constrained")
    drawn = ax.barh(range(len(shares)), shares, height=0.7, color=BARS[0])
    ax.bar_label(drawn, labels=[f"{share:.1%}" for share in shares], padding=3, fontsize=8, color=GREY)
    shown = [label if len(label) <= LONGEST else label[: LONGEST - 1] + "…" for label in map(visible, labels)]
    ax.set_yticks(range(len(shares)), shown, parse_math=False, fontfamily=fonts())
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set_xlabel(axis)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    caption(ax, facts)
    return ax


def caption(ax: Axes, facts: Sequence[str], width: int | None = None) -> int:
    """What a reader must know, above the axes, wrapped to `width` letters or to theirs; how many lines that takes."""
    width = width or columns(ax)
    parts = [line for fact in facts for line in textwrap.wrap(fact, width) or [""]]
    said = wrapped(parts, width)
    ax.set_title(said, loc="left", fontsize=9, color=GREY, parse_math=False, fontfamily=fonts())
    return said.count("\n") + 1


def columns(ax: Axes) -> int:
    """How many letters of a caption stand beside one another above the axes."""
    return max(30, int(13 * ax.get_window_extent().width / ax.figure.dpi))
