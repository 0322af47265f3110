"""Fillings of a text, as joints and `fill` show them: lines of a table, bars, dictionaries, frames.

Knows display and tokens. Refuses to know where the fillings come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Ints
from besag.errors import BesagError, require
from besag.places.filling import Filling, filled
from besag.places.places import Places
from besag.places.tokens import token_id
from besag.results.data import describe
from besag.results.grid import Grid, Line
from besag.results.plots import bars
from besag.results.result import Result
from besag.results.tables import visible
from besag.results.words import number, percent
from besag.vocabulary import Vocabulary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

OWN = "← the text"
MOST_ROWS = 1_000_000  # of likeliest fillings, or of draws: each is a text


def one_each(tokens: Sequence[str | int], places: int, what: str) -> Sequence[str | int]:
    """The tokens, if there is one for each place."""
    if len(tokens) != places:
        raise BesagError(f"{what} takes {places} tokens, one for each place, not {len(tokens)}: {tokens!r}")
    return tokens


def filled_text(vocabulary: Vocabulary, places: Places, tokens: Sequence[str | int]) -> str:
    """The text with one token for each place filled in."""
    given = one_each(tokens, len(places.at), "text")
    ids = [token_id(vocabulary, places, side, token) for side, token in enumerate(given)]
    return filled(vocabulary, places.encoded, places.positions, ids)


def grid(found: Sequence[tuple[str, Filling]], own: tuple[str, ...] | None = None) -> Grid:
    """Ranks, probabilities and tokens with a bar each, the text's own marked; hovering shows the whole text.

    A terminal shows the text beside the tokens where there is room.
    """
    most = max(filling.prob for _, filling in found) or 1.0
    rows = []
    for rank, filling in found:
        mine = own is not None and filling.tokens == own
        numbers, mark = (rank, percent(filling.prob), number(filling.log_prob)), OWN if mine else ""
        cells = [*numbers, *map(visible, filling.tokens), mark]
        rows.append(Line(cells, filling.text, filling.prob / most, mine, f"{filling.text}  {mark}".rstrip()))
    places = [""] * len(found[0][1].tokens)
    return Grid(["", "prob", "log p", *places, ""], rows, left=range(3, len(places) + 4), bar=1)


def held(lost: Iterable[float]) -> str:
    """How much of the mass of each place is covered: "91.2% / 88.0%"; nothing where it is all of it."""
    shares = [f"{1 - part:.1%}" for part in lost]
    return "" if set(shares) == {"100.0%"} else " / ".join(shares)


def covered(lost: Iterable[float]) -> str:
    """The same as the end of a sentence about outcomes."""
    share = held(lost)
    return f", which hold {share} of the mass" if share else ""


def added(own: Sequence[str], forced: Sequence[bool]) -> list[str]:
    """Which of the text's own tokens had to be put among the candidates."""
    return [
        f"{visible(token)} of the text was added to the candidates"
        for token, was in zip(own, forced, strict=False)
        if was
    ]


def left_out(vocabulary: Vocabulary, places: Places, ids: Sequence[Ints]) -> list[str]:
    """Which of the text's own tokens are not among the words given: what would be measured on them is not."""
    missing = [own for own, known in zip(places.gold or (), ids, strict=False) if own not in known]
    return [
        f"{visible(vocabulary.token(own))} of the text is not among the candidates: nothing is measured on it"
        for own in missing
    ]


def record(filling: Filling) -> dict[str, Any]:
    return {**filling._asdict(), "ids": [token.id for token in filling.tokens]}


def frame(result: Result, found: Sequence[Filling], **more: Any) -> DataFrame:
    """One row a filling: token_1 … token_k, prob, log_prob, text."""
    pandas = require("pandas", extra="eval")
    places = range(len(found[0].tokens))
    made: DataFrame = pandas.DataFrame(
        {
            **{f"token_{i + 1}": pandas.Series([str(row.tokens[i]) for row in found], dtype=object) for i in places},
            "prob": np.array([row.prob for row in found]),
            "log_prob": np.array([row.log_prob for row in found]),
            "text": pandas.Series([row.text for row in found], dtype=object),
        }
    ).set_axis(pandas.RangeIndex(1, len(found) + 1, name="rank"))
    return describe(made, result, **more)


def plot_fillings(ax: Axes | None, found: Sequence[Filling], facts: Sequence[str]) -> Axes:
    """The probabilities as bars, the likeliest on top."""
    labels = [" ".join(token.strip() for token in filling.tokens) for filling in found]
    return bars(ax, labels, [filling.prob for filling in found], "probability", facts)
