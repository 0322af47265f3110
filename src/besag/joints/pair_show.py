"""A joint of two places in words and data: what it is normalised over, its facts, table, dictionary and frame.

Refuses to leave out what a reader must know of the numbers: over what they are normalised, by which construction, and
whether it finished.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import quoted, require
from besag.joints import fillings, passes
from besag.joints.acceleration import warning
from besag.joints.unaries import Unaries
from besag.results.data import describe, json_ready
from besag.results.grid import Grid, Line
from besag.results.tables import visible
from besag.results.words import detail, number, percent, unseen
from besag.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.joints.pair import Pair, PairJoint

SHOWN = 10  # pairs in a table
LISTED = 20  # pairs in a dictionary
RIGHT_TO = {"mixed": "2%", "single": "20%"}  # of itself, of a pair found by iterating


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
    share = fillings.covered((unaries.lost.hidden_a, unaries.lost.hidden_b))
    if what == "candidates":
        return f"pairs of tokens: {m:,} × {k:,} candidates{share}"
    return f"all {m:,} × {k:,} pairs of {what}{', special ones too' * (what == 'tokens')}{share}"


def facts(joint: PairJoint) -> list[str]:
    """What a reader must know about the numbers, most important first."""
    measured = joint.metrics()
    return [
        *warnings(joint),
        *unseen(joint.places.unknown),
        f"{joint.construction.label}: {joint.construction.title}",
        f"a probability of {joint.normalised}",
        *fillings.added(joint.gold.tokens if joint.gold else (), joint.unaries.forced),
        *left_out(joint),
        *(detail(name, value) for name, value in joint.details.items()),
        *precision(joint),
        f"entropy {number(measured.entropy)} nats",
        f"mutual information {number(measured.mutual_information)} nats",
        joint.model,
        joint.dtype,
    ]


def warnings(joint: PairJoint) -> list[str]:
    """Why the numbers are not final, if they are not."""
    return warning(joint.status, joint.details, joint.construction.label)


def left_out(joint: PairJoint) -> list[str]:
    """Which of the text's own tokens are not among the outcomes."""
    return fillings.left_out(joint.vocabulary, joint.places, (joint.unaries.ids_a, joint.unaries.ids_b))


def precision(joint: PairJoint) -> list[str]:
    """What can be trusted of tables in float32: `tests/joints/test_constructions.py` holds these sentences to float64.

    An iteration ends where it moves so little of the whole mass; what is rare may still move by much of itself.
    """
    solved = passes.precision(joint.unaries)
    if solved == "double":
        return []
    if "residual" not in joint.built.details:
        return ["in float32: a pair is right to 0.01%"]
    return [f"in float32: pairs above 0.1% are right to {RIGHT_TO[solved]}, rarer ones may be off by a factor"]


def details(joint: PairJoint) -> dict[str, float | int | str]:
    """What the construction says of its work, with tokens instead of their ids."""
    found = dict(joint.built.details)
    if "pivot" in found:
        found["pivot"] = " ".join(visible(joint.vocabulary.token(int(id))) for id in str(found["pivot"]).split())
    return found


def title(joint: PairJoint) -> list[str]:
    """Which two places of which text."""
    tokens, positions = joint.places.encoded.tokens, joint.places.positions
    named = (f"{name} = {visible(tokens[at].strip())} (token {at})" for name, at in zip("ab", positions, strict=True))
    return [quoted(joint.places.encoded.text), ", ".join(named)]


# ---- the table


def grid(joint: PairJoint) -> Grid:
    """The likeliest pairs with a bar for each probability; hovering shows the text with the pair filled in."""
    found = [(rank, pair, pair == joint.gold) for rank, pair in enumerate(joint.top(SHOWN), 1)]
    if joint.gold is not None and not any(own for *_, own in found):
        found.append((joint.metrics().rank, joint.gold, True))
    most = max(pair.prob for _, pair, _ in found) or 1.0
    rows = []
    for rank, pair, own in found:
        numbers = percent(pair.prob), number(pair.log_prob)
        cells = [f"{rank:,}", *map(visible, pair.tokens), *numbers, fillings.OWN if own else ""]
        rows.append(Line(cells, pair.text, pair.prob / most, own))
    return Grid(("", "a", "b", "prob", "log q", ""), rows, left=(1, 2, 5), bar=3)


# ---- data


def to_dict(joint: PairJoint) -> dict[str, Any]:
    encoded, positions = joint.places.encoded, joint.places.positions
    whole = {
        "text": encoded.text,
        "places": [
            {"name": name, "position": int(at), "token": encoded.tokens[at], "span": encoded.offsets[at]}
            for name, at in zip("ab", positions, strict=True)
        ],
        "status": joint.status,
        "facts": joint.facts,
        "method": joint.method,
        "options": dataclasses.asdict(joint.construction),
        "title": joint.construction.title,
        "formula": joint.construction.formula,
        "normalised": joint.normalised,
        "outcomes": joint.unaries.shape,
        "lost": joint.lost,
        "forced": joint.unaries.forced,
        "details": joint.details,
        "unit": joint.unit,
        "entropy": joint.entropy,
        "mutual_information": joint.mutual_information,
        "gold": None if joint.gold is None else {**_record(joint.gold), "rank": joint.metrics().rank},
        "metrics": joint.metrics(),
        "model": joint.model,
        "dtype": joint.dtype,
        "top": [_record(pair) for pair in joint.top(LISTED)],
    }
    return dict(json_ready(whole))


def _record(pair: Pair) -> dict[str, Any]:
    return {"a": pair.a, "b": pair.b, **fillings.record(pair)}


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
            "text": pandas.Series([pair.text for pair in found], dtype=object),
        }
    ).set_axis(pandas.RangeIndex(1, len(found) + 1, name="rank"))
    return describe(frame, joint, text=joint.places.encoded.text)
