"""Masked marginals for readers and programs: the table of a terminal and a notebook, JSON, pandas, a heatmap.

Knows tables and pictures. Refuses to know what the numbers mean beyond what the marginals themselves say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import BesagError, require
from besag.results.data import describe, json_ready
from besag.results.grid import Grid, lines
from besag.results.plots import fonts
from besag.results.tables import raw
from besag.results.words import counted, number, unseen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from besag.scores.marginals import Marginals

LIKELIEST = 20  # tokens of the vocabulary that JSON holds of each place
LIKELY = ("likeliest", "second", "third")  # that a table shows


def facts(found: Marginals) -> list[str]:
    """What a reader must know about the numbers, most important first."""
    if found.status != "ok":
        return [f"not asked: {found.status.sentence}", found.model]
    what = "tokens" if found.candidates is None else "candidates"
    return [
        *unseen(found.encoded.unknown),
        f"log p of {len(found.columns):,} {what} at {counted(len(found), 'place')}, each hidden alone, in {found.unit}",
        f"a row sums to one over {found.normalised}",
        found.model,
        found.dtype,
    ]


def grid(found: Marginals) -> Grid:
    """A line a place: its own token and what stands there most likely."""
    rows = []
    for row, place in enumerate(found.places.tolist()):
        likeliest = [f"{raw(token)} {number(value)}" for token, value in found.top(place, len(LIKELY))]
        own = number(float(found.own[row])) if found.rank[row] else "–"
        rank = str(found.rank[row]) if found.rank[row] else "–"
        rows.append([str(place), raw(found.tokens[row]), own, rank, number(float(found.entropy[row])), *likeliest])
    head = ["place", "token", "log p", "rank", "entropy", *LIKELY[: len(found.columns)]]
    return Grid(head, lines(rows), left=(1, 5, 6, 7))


def to_dict(found: Marginals) -> dict[str, Any]:
    """Every fact and place."""
    names = ("text", "status", "facts", "base", "unit", "normalised", "specials", "model", "dtype")
    whole = {
        **{name: getattr(found, name) for name in names},
        "columns": found.candidates,
        "places": [_place(found, row) for row in range(len(found))],
    }
    return dict(json_ready(whole))


def _place(found: Marginals, row: int) -> dict[str, Any]:
    place, (start, end) = int(found.places[row]), found.offsets[row].tolist()
    if found.candidates is None:
        kept = {str(token): value for token, value in found.top(place, LIKELIEST)}
    else:
        kept = dict(zip(found.candidates, found.log_probs[row].tolist(), strict=True))
    return {
        "place": place,
        "token": found.tokens[row],
        "id": int(found.ids[row]),
        "start": start,
        "end": end,
        "log_prob": float(found.own[row]),
        "rank": int(found.rank[row]),
        "entropy": float(found.entropy[row]),
        "log_probs": kept,
    }


def to_pandas(found: Marginals, wide: bool = True) -> DataFrame:
    """One row a place and one column a token, or one row for each of both."""
    pandas = require("pandas", extra="eval")
    about = pandas.DataFrame(
        {
            "token": pandas.Series(found.tokens, dtype=object),
            "start": found.offsets[:, 0],
            "end": found.offsets[:, 1],
            "own_log_prob": found.own,
            "rank": found.rank,
            "entropy": found.entropy,
        }
    ).set_index(pandas.Index(found.places, name="place"))
    frame: DataFrame
    if wide:
        kept = found.log_probs[:, : len(found.columns)]  # a text without places has no columns either
        values = pandas.DataFrame(kept, index=about.index, columns=list(found.columns))
        frame = pandas.concat([about, values], axis=1)
    else:
        count = len(found.columns)
        frame = about.loc[np.repeat(found.places, count)].reset_index()
        frame["candidate"] = list(found.columns) * len(found)
        frame["log_prob"], frame["effect"] = found.log_probs.ravel(), found.effects.ravel()
    return describe(frame, found)


def draw(found: Marginals, ax: Axes | None, n: int) -> Axes:
    """Effects as colours: blue where the model likes a token better than the text's own, red where less."""
    if not len(found):
        raise BesagError(f"there is nothing to draw: {facts(found)[0]}")
    pyplot = require("matplotlib.pyplot", extra="plot")
    effects = found.effects  # (n, k)
    chosen = np.arange(effects.shape[1])
    if found.candidates is None:
        chosen = np.sort(np.argsort(-found.log_probs.max(0), kind="stable")[:n])
    values = np.where(np.isfinite(effects[:, chosen]), effects[:, chosen], np.nan).T  # (k, n)
    if ax is None:
        ax = pyplot.subplots(figsize=(max(4, 0.35 * len(found)), max(2, 0.28 * len(chosen))), layout="constrained")[1]
    most = max(float(np.nanmax(np.abs(values), initial=0.0)), 1e-9)
    image = ax.imshow(values, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
    family = fonts()
    ax.set_xticks(range(len(found)), [raw(token) for token in found.tokens], rotation=90, family=family)
    ax.set_yticks(range(len(chosen)), [raw(found.columns[column]) for column in chosen], family=family)
    ax.figure.colorbar(image, ax=ax, label=f"log p − log p of the text's own token ({found.unit})")
    return ax
