"""A joint of two places in words and data: the table of a terminal, the page of a notebook, a dictionary, a frame.

Knows display widths, HTML and what JSON cannot write. Refuses to leave out what a reader must know of the numbers: over
what they are normalised, by which construction, and whether it finished.
"""

from __future__ import annotations

import dataclasses
import html as markup
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import require
from besag.joints.unaries import Unaries
from besag.results.data import json_number
from besag.results.tables import aligned, visible, wrapped
from besag.results.words import number, percent, quoted
from besag.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.joints.pair import Pair, PairJoint

SHOWN = 10  # pairs in a table
TOLD = 20  # pairs in a dictionary
OWN = "← the text"


# ---- words


def kind(unaries: Unaries, vocabulary: Vocabulary) -> str:
    """What the outcomes are: "tokens" (all there are), "text tokens" (all but the special ones) or "candidates"."""
    text = set(vocabulary.tokenizer.get_vocab().values()) - vocabulary.special_ids
    both = set(unaries.ids_a.tolist()) & set(unaries.ids_b.tolist())
    if not text <= both:
        return "candidates"
    return "tokens" if both & vocabulary.special_ids else "text tokens"


def extent(unaries: Unaries, vocabulary: Vocabulary) -> str:
    """Over what a joint of these conditionals is normalised, and how much of the mass that is."""
    m, k = unaries.shape
    what = kind(unaries, vocabulary)
    held = [f"{1 - lost:.1%}" for lost in (unaries.lost.hidden_a, unaries.lost.hidden_b)]
    share = "" if held == ["100.0%", "100.0%"] else f", which hold {held[0]} / {held[1]} of the mass"
    if what == "candidates":
        return f"pairs of tokens: {m:,} × {k:,} candidates{share}"
    return f"all {m:,} × {k:,} pairs of {what}{', special ones too' * (what == 'tokens')}{share}"


def facts(joint: PairJoint) -> list[str]:
    """What a reader must know about the numbers, most important first."""
    measured, unaries = joint.metrics(), joint.unaries
    forced = [token for token, was in zip(joint.gold[:2] if joint.gold else (), unaries.forced, strict=False) if was]
    return [
        *warning(joint),
        f"{joint.construction.label}: {joint.construction.title}",
        f"a probability of {joint.normalised}",
        *(f"{visible(token)} of the text was added to the candidates" for token in forced),
        *(f"{name.replace('_', ' ')} {_fact(value)}" for name, value in _found(joint).items()),
        f"entropy {number(measured.entropy)} nats",
        f"mutual information {number(measured.mutual_information)} nats",
        joint.model,
        joint.dtype,
    ]


def warning(joint: PairJoint) -> list[str]:
    """Why the numbers are not final, if they are not, as a fact that nobody overlooks."""
    what, colon, why = joint.status.partition(":")
    return [] if joint.status == "ok" else [f"{joint.construction.label} {what.upper()}{colon}{why}"]


def _found(joint: PairJoint) -> dict[str, float | int | str]:
    """What the construction says of its work, with tokens instead of their ids."""
    found = dict(joint.built.facts)
    if "pivot" in found:
        found["pivot"] = " ".join(visible(joint.vocabulary.token(int(id))) for id in str(found["pivot"]).split())
    return found


def _fact(value: float | int | str) -> str:
    return f"{value:.2g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def title(joint: PairJoint) -> list[str]:
    """Which two places of which text."""
    tokens, positions = joint.places.encoded.tokens, joint.places.positions
    named = (f"{name} = {visible(tokens[at].strip())} (token {at})" for name, at in zip("ab", positions, strict=True))
    return [quoted(joint.places.encoded.text), ", ".join(named)]


def pairs(joint: PairJoint, n: int) -> list[tuple[int, Pair, bool]]:
    """The n likeliest pairs with their ranks, and the text's own where it is not among them."""
    found = [(rank, pair, pair == joint.gold) for rank, pair in enumerate(joint.top(n), 1)]
    if joint.gold is not None and not any(own for *_, own in found):
        found.append((joint.metrics().rank, joint.gold, True))
    return found


# ---- the table


def table(joint: PairJoint, width: int | None = None) -> str:
    """The likeliest pairs; then what the numbers are."""
    width = width or shutil.get_terminal_size().columns
    rows = [["", "a", "b", "prob", "log q", ""]]
    for rank, pair, own in pairs(joint, SHOWN):
        shown = [visible(token) for token in pair[:2]]
        rows.append([f"{rank:,}", *shown, percent(pair.prob), number(pair.log_prob), OWN if own else ""])
    return f"{wrapped(title(joint), width)}\n\n{aligned(rows, left=(1, 2, 5))}\n\n{wrapped(facts(joint), width)}"


# ---- the notebook


def html(joint: PairJoint) -> str:
    """The likeliest pairs with a bar for each probability; hovering shows the text with the pair filled in.

    The bars are translucent and the letters keep the page's own colour, so that light and dark pages both work.
    """
    found = pairs(joint, SHOWN)
    most = max(pair.prob for _, pair, _ in found) or 1.0
    rows = "".join(_row(joint, rank, pair, own, most) for rank, pair, own in found)
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in ("", "a", "b", "prob", "log q", ""))
    return (
        f'<div dir="auto">{markup.escape(" · ".join(title(joint)))}</div>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'<div style="opacity:.75;font-size:85%">{markup.escape(" · ".join(facts(joint)))}</div>'
    )


def _row(joint: PairJoint, rank: int, pair: Pair, own: bool, most: float) -> str:
    share = 100 * pair.prob / most
    bar = f"background:linear-gradient(to right,rgba(226,72,38,.35) {share:.1f}%,transparent {share:.1f}%)"
    tokens = "".join(f'<td style="text-align:left" dir="auto">{markup.escape(visible(t))}</td>' for t in pair[:2])
    weight = ' style="font-weight:bold"' if own else ""
    return (
        f'<tr{weight} title="{markup.escape(joint.text(pair.a, pair.b))}"><td>{rank:,}</td>{tokens}'
        f'<td style="min-width:8em;text-align:left;{bar}">{percent(pair.prob)}</td>'
        f"<td>{number(pair.log_prob, 3)}</td><td>{OWN if own else ''}</td></tr>"
    )


# ---- data


def to_dict(joint: PairJoint) -> dict[str, Any]:
    encoded, positions = joint.places.encoded, joint.places.positions
    measured = {name: json_number(value) for name, value in joint.metrics()._asdict().items()}
    return {
        "text": encoded.text,
        "places": [
            {"name": name, "position": int(at), "token": encoded.tokens[at], "span": encoded.offsets[at].tolist()}
            for name, at in zip("ab", positions, strict=True)
        ],
        "status": joint.status,
        "method": joint.method,
        "options": dataclasses.asdict(joint.construction),
        "title": joint.construction.title,
        "formula": joint.construction.formula,
        "normalised": joint.normalised,
        "outcomes": list(joint.unaries.shape),
        "lost": joint.lost._asdict(),
        "forced": list(joint.unaries.forced),
        "facts": {name: json_number(v) if isinstance(v, float) else v for name, v in _found(joint).items()},
        "unit": "nats",
        "entropy": json_number(joint.entropy),
        "mutual_information": json_number(joint.mutual_information),
        "gold": None if joint.gold is None else {**_record(joint, joint.gold), "rank": joint.metrics().rank},
        "metrics": measured,
        "model": joint.model,
        "dtype": joint.dtype,
        "top": [_record(joint, pair) for pair in joint.top(TOLD)],
    }


def _record(joint: PairJoint, pair: Pair) -> dict[str, Any]:
    return {
        "a": str(pair.a),
        "b": str(pair.b),
        "prob": pair.prob,
        "log_prob": json_number(pair.log_prob),
        "text": joint.text(pair.a, pair.b),
    }


def to_pandas(joint: PairJoint, n: int) -> DataFrame:
    pandas = require("pandas", extra="eval")
    found = joint.top(n)
    frame: DataFrame = pandas.DataFrame(
        {
            "a": pandas.Series([str(pair.a) for pair in found], dtype=object),
            "b": pandas.Series([str(pair.b) for pair in found], dtype=object),
            "prob": np.array([pair.prob for pair in found]),
            "log_prob": np.array([pair.log_prob for pair in found]),
            "id_a": np.array([pair.a.id for pair in found], dtype=np.int64),
            "id_b": np.array([pair.b.id for pair in found], dtype=np.int64),
            "text": pandas.Series([joint.text(pair.a, pair.b) for pair in found], dtype=object),
        }
    )
    frame.index = pandas.RangeIndex(1, len(found) + 1, name="rank")
    frame.attrs.update({name: getattr(joint, name) for name in ("method", "normalised", "status", "model", "dtype")})
    return frame
