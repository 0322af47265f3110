"""A joint of several places in words and data: what it is normalised over, its facts, table, dictionary and frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from besag.joints import fillings
from besag.joints.acceleration import warning
from besag.results.data import json_ready
from besag.results.grid import Grid
from besag.results.words import detail, number, unseen

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.joints.block import BlockJoint

SHOWN = 10  # fillings in a table
LISTED = 20  # fillings in a dictionary


def extent(joint: BlockJoint) -> str:
    """Over what the joint is normalised, and how much of the mass that is."""
    by = " × ".join(f"{len(ids):,}" for ids in joint.ids)
    return f"{len(joint)}-tuples of tokens: {by} candidates{fillings.covered(joint.lost.hidden)}"


def facts(joint: BlockJoint) -> list[str]:
    return [
        *warning(joint.status, joint.details),
        *unseen(joint.places.unknown),
        f"{joint.method}: a probability of {joint.normalised}",
        *fillings.added(joint.gold.tokens if joint.gold else (), joint.forced),
        *fillings.left_out(joint.vocabulary, joint.places, joint.ids),
        *(detail(name, value) for name, value in joint.details.items()),
        f"entropy {number(joint.entropy)} nats",
        f"total correlation {number(joint.total_correlation)} nats",
        joint.model,
        joint.dtype,
    ]


def grid(joint: BlockJoint) -> Grid:
    """The likeliest fillings, and the text's own where it is not among them."""
    found = [(str(rank), filling) for rank, filling in enumerate(joint.top(SHOWN), 1)]
    if joint.gold is not None and joint.rank > len(found):
        found.append((f"{joint.rank:,}", joint.gold))
    return fillings.grid(found, None if joint.gold is None else joint.gold.tokens)


def to_dict(joint: BlockJoint) -> dict[str, Any]:
    encoded, positions = joint.places.encoded, joint.places.positions
    whole = {
        "text": encoded.text,
        "places": [{"position": int(at), "token": encoded.tokens[at], "span": encoded.offsets[at]} for at in positions],
        "status": joint.status,
        "facts": joint.facts,
        "method": joint.method,
        "normalised": joint.normalised,
        "candidates": [len(ids) for ids in joint.ids],
        "lost": joint.lost,
        "forced": joint.forced,
        "details": joint.details,
        "unit": joint.unit,
        "entropy": joint.entropy,
        "total_correlation": joint.total_correlation,
        "gold": None if joint.gold is None else {**fillings.record(joint.gold), "rank": joint.rank},
        "model": joint.model,
        "dtype": joint.dtype,
        "top": [fillings.record(filling) for filling in joint.top(LISTED)],
    }
    return dict(json_ready(whole))


def to_pandas(joint: BlockJoint, n: int) -> DataFrame:
    return fillings.frame(joint, joint.top(n), text=joint.places.encoded.text)
