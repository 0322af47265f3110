"""An explanation as a picture: a bar for each token, the curve of faithfulness beside it. Imports matplotlib late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.errors import quoted, require
from besag.results.plots import BARS, GREY, caption, fonts
from besag.results.tables import raw, visible
from besag.results.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from besag.explanation.explanation import Explanation
    from besag.explanation.faithfulness import Curve

LONGEST = 20  # letters of a token


def draw(found: Explanation, ax: Axes | None) -> Axes:
    """Bars from the top, in the order of the text; those against the prediction to the left."""
    n = len(found.values)
    if ax is None:
        pyplot = require("matplotlib.pyplot", extra="plot")
        size = (6.4 + (0 if found.curve is None else 2.6), max(2.6, 1.3 + 0.27 * n))
        _, ax = pyplot.subplots(figsize=size, layout="constrained")
    values = np.nan_to_num(found.values, posinf=np.nan, neginf=np.nan)
    colours = [BARS[0] if value >= 0 else BARS[1] for value in values]
    drawn = ax.barh(range(n), np.nan_to_num(values), height=0.7, color=colours)
    labels = [number(value) for value in found.values.tolist()]
    ax.bar_label(drawn, labels=labels, padding=3, fontsize=8, color=GREY)
    shown = [visible(one.text) if one.text else raw(one.token) for one in found.pieces()]
    named = [text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…" for text in shown]
    ax.set_yticks(range(n), named, parse_math=False, fontfamily=fonts())
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.axvline(0, color="0.7", linewidth=0.8, zorder=0)
    ax.set_xlabel(f"importance ({found.unit})")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    caption(ax, [quoted(found.text), *found.facts])
    if found.curve is not None:
        _curve(found.curve, ax.inset_axes((1.08, 0.0, 0.42, 1.0)))
    return ax


def _curve(found: Curve, ax: Axes) -> None:
    ax.fill_between(found.shares, found.random, found.probs, color=BARS[0], alpha=0.2, linewidth=0)
    ax.plot(found.shares, found.random, color=GREY, linewidth=1.3, label="in random order")
    ax.plot(found.shares, found.probs, color=BARS[0], linewidth=1.8, label="most important first")
    ax.set(xlim=(0, 1), ylim=(0, None))
    ax.set_xlabel("share of tokens hidden")
    ax.set_ylabel("probability of the prediction")
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
