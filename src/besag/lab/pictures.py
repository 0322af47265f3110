"""How the lab draws: colours that colour-blind readers tell apart (Okabe and Ito), each with a mark of its own.

A curve is known by its colour, its mark and its dashes, and is named at its end or in a legend; axes say their units.
Knows arrays and axes, and no experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", "-", "--", "-.")
PLAIN = 1e-3, 1e4  # where a logarithmic axis has ticks such as 0.04 and 300 and no powers of ten


def style(number: int) -> dict[str, Any]:
    """Colour, mark and dashes of the curve of this number."""
    at = number % len(COLOURS)
    return {"color": COLOURS[at], "marker": MARKS[at], "linestyle": DASHES[at]}


def curves(
    ax: Axes, x: ArrayLike, named: Mapping[str, ArrayLike], xlabel: str, ylabel: str, *, xscale: str = "linear",
    yscale: str = "linear", legend: str = "", first: int = 0,
) -> Axes:  # fmt: skip
    """A curve for each name; `first` is the number of the first one's style."""
    for number, (name, y) in enumerate(named.items(), first):
        ax.plot(x, y, label=name, markersize=4.5, linewidth=1.6, **style(number))
    return dressed(ax, xlabel, ylabel, xscale=xscale, yscale=yscale, legend=legend)


def dressed(
    ax: Axes, xlabel: str, ylabel: str, *, xscale: str = "linear", yscale: str = "linear", legend: str = ""
) -> Axes:
    """Axes named and scaled, a light grid, and a legend where something has a name."""
    ax.set_xscale(xscale)
    ax.set_yscale(yscale)
    for axis, scale in ((ax.xaxis, xscale), (ax.yaxis, yscale)):
        if scale == "log":
            _write_plainly(axis)
    ax.set_xlabel(xlabel, fontsize=11)
    ax.set_ylabel(ylabel, fontsize=11)
    ax.tick_params(labelsize=10)
    ax.grid(True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(title=legend or None, fontsize=9.5, title_fontsize=9.5, frameon=False)
    return ax


def _write_plainly(axis: Axis) -> None:
    """Ticks of a logarithmic axis as one says them, 0.4 and not 4 × 10⁻¹, where no number on it is long."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Plain(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            said = super().__call__(x, pos)  # empty where a tick is better without
            low, high = sorted(axis.get_view_interval())
            return f"{x:g}" if said and PLAIN[0] <= low and high <= PLAIN[1] else said

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain(labelOnlyBase=False))
