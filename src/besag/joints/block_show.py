"""Joints of several places, and fillings of a text, in words and data: tables, notebook pages, dictionaries, frames.

Knows display widths, HTML and what JSON cannot write. Refuses to leave out over what the numbers are normalised, how
they were found, and whether that finished.
"""

from __future__ import annotations

import html as markup
import shutil
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import require
from besag.joints.pair_show import OWN
from besag.places.filling import Filling
from besag.results.data import json_number
from besag.results.tables import aligned, display_width, visible, wrapped
from besag.results.words import number, percent, quoted

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.joints.block import BlockJoint

SHOWN = 10  # fillings in a table
TOLD = 20  # fillings in a dictionary


# ---- words


def held(lost: Iterable[float]) -> str:
    """How much of the mass of each place is covered: "91.2% / 88.0%"; nothing where it is all of it."""
    shares = [f"{1 - part:.1%}" for part in lost]
    return "" if set(shares) == {"100.0%"} else " / ".join(shares)


def extent(joint: BlockJoint) -> str:
    by, share = " × ".join(f"{len(ids):,}" for ids in joint.ids), held(joint.lost.hidden)
    return f"{len(joint)}-tuples of tokens: {by} candidates" + (f", which hold {share} of the mass" if share else "")


def fact(value: float | int) -> str:
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


def facts(joint: BlockJoint) -> list[str]:
    forced = [token for token, was in zip(joint.gold.tokens if joint.gold else (), joint.forced, strict=False) if was]
    return [
        *([] if joint.status == "ok" else [joint.status.upper()]),
        f"{joint.method}: a probability of {joint.normalised}",
        *(f"{visible(token)} of the text was added to the candidates" for token in forced),
        *(f"{name} {fact(value)}" for name, value in joint.facts.items()),
        f"entropy {number(joint.entropy)} nats",
        f"total correlation {number(joint.total_correlation)} nats",
        joint.model,
        joint.dtype,
    ]


# ---- tables


def table(joint: BlockJoint, width: int | None = None) -> str:
    """The likeliest fillings, and the text's own where it is not among them; then what the numbers are."""
    width = width or shutil.get_terminal_size().columns
    found = [(str(rank), filling) for rank, filling in enumerate(joint.top(SHOWN), 1)]
    if joint.gold is not None and joint.rank > len(found):
        found.append((f"{joint.rank:,}", joint.gold))
    own = None if joint.gold is None else joint.gold.tokens
    rows = rows_of(found, own, width)
    return f"{quoted(joint.places.encoded.text)}\n\n{rows}\n\n{wrapped(facts(joint), width)}"


def rows_of(found: Sequence[tuple[str, Filling]], own: tuple[str, ...] | None, width: int) -> str:
    rows = [["", "prob", "log p", *([""] * len(found[0][1].tokens)), ""]]
    for rank, filling in found:
        mark = OWN if own is not None and filling.tokens == own else ""
        tokens = [visible(token) for token in filling.tokens]
        rows.append([rank, percent(filling.prob), number(filling.log_prob), *tokens, mark])
    left, last = range(3, len(rows[0])), len(rows[0]) - 1
    whole = [[*row[:last], filling.text if not row[last] else f"{filling.text}  {row[last]}"]
             for row, (_, filling) in zip(rows[1:], found, strict=True)]  # fmt: skip
    lines = aligned([rows[0], *whole], left)
    return (
        lines if max(map(display_width, lines.splitlines())) <= width else aligned(rows, left)
    )  # long texts stay away


# ---- the notebook


def html(joint: BlockJoint) -> str:
    own = None if joint.gold is None else joint.gold.tokens
    return page(joint.places.encoded.text, joint.top(SHOWN), own, facts(joint))


def page(text: str, found: Sequence[Filling], own: tuple[str, ...] | None, told: Sequence[str]) -> str:
    """The fillings with a bar for each probability; hovering shows the whole text.

    The bars are translucent and the letters keep the page's own colour, so that light and dark pages both work.
    """
    most = max(filling.prob for filling in found) or 1.0
    rows = "".join(_row(rank, filling, filling.tokens == own, most) for rank, filling in enumerate(found, 1))
    return (
        f'<div dir="auto">{markup.escape(quoted(text))}</div><table><tbody>{rows}</tbody></table>'
        f'<div style="opacity:.75;font-size:85%">{markup.escape(" · ".join(told))}</div>'
    )


def _row(rank: int, filling: Filling, own: bool, most: float) -> str:
    share = 100 * filling.prob / most
    bar = f"background:linear-gradient(to right,rgba(226,72,38,.35) {share:.1f}%,transparent {share:.1f}%)"
    tokens = "".join(
        f'<td style="text-align:left" dir="auto">{markup.escape(visible(token))}</td>' for token in filling.tokens
    )
    weight = ' style="font-weight:bold"' if own else ""
    return (
        f'<tr{weight} title="{markup.escape(filling.text)}"><td>{rank}</td>{tokens}'
        f'<td style="min-width:8em;text-align:left;{bar}">{percent(filling.prob)}</td>'
        f"<td>{number(filling.log_prob, 3)}</td></tr>"
    )


# ---- data


def record(filling: Filling) -> dict[str, Any]:
    return {
        "tokens": [str(token) for token in filling.tokens],
        "ids": [token.id for token in filling.tokens],
        "text": filling.text,
        "log_prob": json_number(filling.log_prob),
        "prob": filling.prob,
    }


def to_dict(joint: BlockJoint) -> dict[str, Any]:
    encoded, positions = joint.places.encoded, joint.places.positions
    return {
        "text": encoded.text,
        "places": [
            {"position": int(at), "token": encoded.tokens[at], "span": encoded.offsets[at].tolist()} for at in positions
        ],
        "status": joint.status,
        "method": joint.method,
        "normalised": joint.normalised,
        "candidates": [len(ids) for ids in joint.ids],
        "lost": {name: list(part) for name, part in joint.lost._asdict().items()},
        "forced": list(joint.forced),
        "facts": {name: json_number(value) for name, value in joint.facts.items()},
        "unit": "nats",
        "entropy": joint.entropy,
        "total_correlation": joint.total_correlation,
        "gold": None if joint.gold is None else {**record(joint.gold), "rank": joint.rank},
        "model": joint.model,
        "dtype": joint.dtype,
        "top": [record(filling) for filling in joint.top(TOLD)],
    }


def to_pandas(joint: BlockJoint, n: int) -> DataFrame:
    frame = frame_of(joint.top(n))
    frame.attrs.update({name: getattr(joint, name) for name in ("method", "normalised", "status", "model", "dtype")})
    return frame


def frame_of(found: Sequence[Filling]) -> DataFrame:
    """One row a filling: token_1 … token_k, prob, log_prob, text."""
    pandas = require("pandas", extra="eval")
    places = range(len(found[0].tokens))
    frame: DataFrame = pandas.DataFrame(
        {
            **{f"token_{i + 1}": pandas.Series([str(row.tokens[i]) for row in found], dtype=object) for i in places},
            "prob": np.array([row.prob for row in found]),
            "log_prob": np.array([row.log_prob for row in found]),
            "text": pandas.Series([row.text for row in found], dtype=object),
        }
    ).set_axis(pandas.RangeIndex(1, len(found) + 1, name="rank"))
    return frame
