"""Masked marginals for readers and programs: the table of a terminal and a notebook, JSON, pandas, a heatmap.

Knows tables and pictures. Refuses to know what the numbers mean beyond what the marginals themselves say.
"""

from __future__ import annotations

import html as markup
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import BesagError, require
from besag.results.data import json_number
from besag.results.plots import fonts
from besag.results.tables import aligned, raw, wrapped
from besag.results.words import counted, number, quoted
from besag.scores.show import REASONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from besag.scores.marginals import Marginals

LIKELIEST = 20  # tokens of the vocabulary that JSON holds of each place
LIKELY = ("likeliest", "second", "third")  # that a table shows


def facts(found: Marginals) -> list[str]:
    """What a reader must know about the numbers, most important first."""
    if found.status != "ok":
        return [f"not asked: {REASONS.get(found.status, found.status)}", found.model]
    what = "tokens" if found.candidates is None else "candidates"
    return [
        f"log p of {len(found.columns):,} {what} at {counted(len(found), 'place')}, each hidden alone, in {found.unit}",
        f"a row sums to one over {found.normalised}",
        found.model,
        found.dtype,
    ]


def _grid(found: Marginals) -> list[list[str]]:
    """A row a place: its own token and what stands there most likely."""
    head = ["place", "token", "log p", "rank", "entropy", *LIKELY[: len(found.columns)]]
    rows = []
    for row, place in enumerate(found.places.tolist()):
        likeliest = [f"{raw(token)} {number(value)}" for token, value in found.top(place, len(LIKELY))]
        own = number(float(found.own[row])) if found.rank[row] else "–"
        rank = str(found.rank[row]) if found.rank[row] else "–"
        rows.append([str(place), raw(found.tokens[row]), own, rank, number(float(found.entropy[row])), *likeliest])
    return [head, *rows]


def table(found: Marginals, width: int | None = None) -> str:
    """The places one below the other, then what the numbers are."""
    width = width or shutil.get_terminal_size().columns
    if not len(found):
        return wrapped([quoted(found.text), *facts(found)], width)
    return f"{aligned(_grid(found), left=(1, 5, 6, 7))}\n\n{wrapped(facts(found), width)}"


def html(found: Marginals) -> str:
    """The same for a notebook."""
    said = markup.escape(" · ".join(facts(found)))
    if not len(found):
        return f"<div>{markup.escape(found.text)}</div><div>{said}</div>"
    head, *rows = _grid(found)
    cells = "".join(f"<th>{markup.escape(cell)}</th>" for cell in head)
    lines = ("".join(f"<td>{markup.escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table><tr>{cells}</tr>{body}</table><div style="opacity:.75;font-size:85%">{said}</div>'


def to_dict(found: Marginals) -> dict[str, Any]:
    """Every fact and place."""
    names = ("text", "status", "base", "unit", "normalised", "specials", "model", "dtype")
    return {
        **{name: getattr(found, name) for name in names},
        "facts": facts(found),
        "columns": None if found.candidates is None else list(found.candidates),
        "places": [_place(found, row) for row in range(len(found))],
    }


def _place(found: Marginals, row: int) -> dict[str, Any]:
    place, (start, end) = int(found.places[row]), found.offsets[row].tolist()
    if found.candidates is None:
        kept = {str(token): json_number(value) for token, value in found.top(place, LIKELIEST)}
    else:
        kept = dict(zip(found.candidates, map(json_number, found.log_probs[row].tolist()), strict=True))
    return {
        "place": place,
        "token": found.tokens[row],
        "id": int(found.ids[row]),
        "start": start,
        "end": end,
        "log_prob": json_number(float(found.own[row])),
        "rank": int(found.rank[row]),
        "entropy": json_number(float(found.entropy[row])),
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
        values = pandas.DataFrame(found.log_probs, index=about.index, columns=list(found.columns))
        frame = pandas.concat([about, values], axis=1)
    else:
        count = len(found.columns)
        frame = about.loc[np.repeat(found.places, count)].reset_index()
        frame["candidate"] = list(found.columns) * len(found)
        frame["log_prob"], frame["effect"] = found.log_probs.ravel(), found.effects.ravel()
    frame.attrs.update({name: getattr(found, name) for name in ("text", "normalised", "unit", "model", "dtype")})
    return frame


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
