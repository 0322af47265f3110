"""A joint of two places as a picture: a heatmap with the marginals on its sides; and the bars of a comparison.

Knows matplotlib, which it imports only when a picture is drawn. Rows and columns are the tokens with the largest
marginals, so what is shown is a corner of the joint; the caption says how much of the probability lies in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from besag.errors import require
from besag.joints import pair_show
from besag.results.plots import BARS, COLOURS, GREY, caption, columns, fonts
from besag.results.tables import raw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from besag.joints.comparison import Comparison
    from besag.joints.pair import PairJoint

SIDE, GAP = 0.2, 0.012  # the bars of a marginal beside the heatmap and the space before them, in its own size
SMALL = 7.5  # points
MARGIN = 0.1  # inches around a figure made here
WRITTEN = 0.005  # a cell this probable has its number written in it
LONGEST = 16  # letters of a token


def draw(joint: PairJoint, ax: Axes | None, n: int) -> Axes:
    """Draw q over the n likeliest tokens of each place on `ax`, or on a new figure of fitting size."""
    colors = require("matplotlib.colors", extra="plot")
    own = joint.unaries.gold or (None, None)
    x, y = (_likeliest(marginal, n, token) for marginal, token in zip(joint.marginals, own, strict=True))
    cells = np.exp(joint._cells(torch.from_numpy(x), torch.from_numpy(y)))  # (n, n)
    if ax is None:
        pyplot = require("matplotlib.pyplot", extra="plot")
        figure, ax = pyplot.subplots(figsize=(3.0 + 0.52 * len(y), 2.6 + 0.42 * len(x)), layout="constrained")
        figure.get_layout_engine().set(w_pad=MARGIN, h_pad=MARGIN)
    shades = colors.PowerNorm(0.5, 0.0, float(cells.max()) or 1.0)  # by the square root: small numbers keep some colour
    image = ax.imshow(cells, cmap=COLOURS, norm=shades, aspect="auto")
    for row, column in np.argwhere(cells >= WRITTEN):
        ink = "black" if np.dot(image.cmap(shades(cells[row, column]))[:3], (0.299, 0.587, 0.114)) > 0.5 else "white"
        ax.text(column, row, f"{cells[row, column]:.1%}", ha="center", va="center", color=ink, fontsize=SMALL)
    if joint.unaries.gold is not None:
        row, column = x.tolist().index(own[0]), y.tolist().index(own[1])
        patches = require("matplotlib.patches", extra="plot")
        box = patches.Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor="black", linewidth=1.6)
        ax.add_patch(box).set_zorder(5)
    for axis, side, at in ((ax.yaxis, 0, x), (ax.xaxis, 1, y)):
        _label(axis, [*map(_short, joint._tokens(side, at))], f"{'ab'[side]} (token {joint.places.positions[side]})")
    for tick in ax.get_xticklabels():
        tick.set(rotation=45, ha="right", rotation_mode="anchor")
    ax.spines[:].set_visible(False)
    above = _sides(ax, *(np.exp(marginal[at]) for marginal, at in zip(joint.marginals, (x, y), strict=True)))
    facts = joint.facts[:-4]
    caption(above, [pair_show.title(joint)[0], *facts, f"{cells.sum():.1%} of it is shown"], columns(ax))
    return ax


def _likeliest(log_marginal: NDArray[np.float64], n: int, own: int | None) -> NDArray[np.intp]:
    """The n likeliest tokens, likeliest first; the text's own is always among them."""
    found = np.argsort(-log_marginal, kind="stable")[:n]
    if own is not None and own not in found:
        found[-1] = own
    return found


def _short(token: str) -> str:
    shown = raw(token)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _label(axis: Any, tokens: list[str], name: str) -> None:
    """Tokens along one side, and white lines between the cells."""
    axis.set_ticks(np.arange(len(tokens)), tokens, fontsize=10, parse_math=False, fontfamily=fonts())
    axis.set_ticks(np.arange(len(tokens) + 1) - 0.5, minor=True)
    axis.set_tick_params(which="both", length=0)
    axis.grid(which="minor", color="white", linewidth=1.5)
    axis.set_label_text(name, color=GREY)


def _sides(ax: Axes, u: NDArray[np.float64], v: NDArray[np.float64]) -> Axes:
    """The marginals as bars: of a to the right, of b above."""
    right, above = ax.inset_axes((1 + GAP, 0, SIDE, 1)), ax.inset_axes((0, 1 + GAP, 1, SIDE))
    right.barh(np.arange(len(u)), u, color=BARS[0], height=0.8)
    above.bar(np.arange(len(v)), v, color=BARS[0], width=0.8)
    right.set(xlim=(0, 1.35 * u.max()), ylim=ax.get_ylim())  # with room for the numbers
    above.set(ylim=(0, 1.25 * v.max()), xlim=ax.get_xlim())
    for row, p in enumerate(u):
        right.text(p, row, f" {p:.1%}", va="center", fontsize=SMALL, color=GREY)
    for column, p in enumerate(v):
        above.text(column, p, f"{p:.1%}", ha="center", va="bottom", fontsize=SMALL, color=GREY)
    right.set_axis_off()
    above.set_axis_off()
    return above


def bars(comparison: Comparison, ax: Axes | None) -> Axes:
    """P-NLL and U-NLL of every construction; A-KL and mutual information where the text hides its tokens."""
    rows = [row for row in comparison.rows if row["top"] is not None]  # the model's own has no joint
    names = {"pair_nll": "P-NLL: both tokens together", "unary_nll": "U-NLL: each given the other"}
    if comparison.joints[0].gold is None:
        names = {"all_forward": "A-KL: from the model's conditionals", "mutual_information": "mutual information"}
    own = None
    if ax is None:
        pyplot = require("matplotlib.pyplot", extra="plot")
        own, ax = pyplot.subplots(figsize=(7.5, 2.4 + 0.4 * len(rows)), layout="constrained")
    places = np.arange(len(rows))
    for number, (name, words) in enumerate(names.items()):
        values = [row[name] for row in rows]
        drawn = ax.barh(places + 0.38 * (number - 0.5), values, height=0.36, color=BARS[number], label=words)
        box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.8}  # the line does not cross a number
        ax.bar_label(drawn, fmt="%.2f", padding=3, fontsize=SMALL, color=GREY, bbox=box)
    for row in comparison.rows[len(rows) :]:
        line: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1, "zorder": 1.5}
        ax.axvline(row["unary_nll"], label="U-NLL: the model's own conditionals", **line)
    ax.set_yticks(places, [row["construction"] for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("nats, less is better" if "pair_nll" in names else "nats")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    style: dict[str, Any] = {"frameon": False, "fontsize": 9}
    if own is None:
        ax.legend(**style)
    else:
        own.legend(loc="outside lower center", ncols=2, **style)
    caption(ax, [pair_show.title(comparison.joints[0])[0], *comparison.facts[:-1]])  # bars have no stars to explain
    return ax
