"""The joint of several places of a text by the name of its construction: of two places by any, of more by some.

Knows which construction goes with how many places, and how the words in its options are read at them. Refuses to know
what is asked (`asking.py`, `block_asking.py`) and how a joint is found from it.
"""

from __future__ import annotations

from typing import Any, Literal

from besag.checks import checked
from besag.engine import Engine
from besag.errors import BesagError, quoted
from besag.joints.asking import unaries
from besag.joints.block import BLOCK_METHODS, BLOCK_OPTIONS, BlockJoint, block_joint
from besag.joints.candidates import Candidates, Kind, automatic
from besag.joints.pair import PairJoint
from besag.joints.registry import CONSTRUCTIONS, Construction, construction
from besag.places.places import Places
from besag.places.tokens import token_ids
from besag.registry import refuse_unknown
from besag.results.words import dtype_name

OWN = (
    "positions",
    "method",
    "outcomes",
    "candidates",
    "gold",
)  # beside options of a construction


@checked
def joint(
    engine: Engine,
    places: Places,
    method: str = "ag",
    *,
    outcomes: Kind = "text",
    candidates: Candidates | Literal["auto"] = "auto",
    **options: Any,
) -> PairJoint | BlockJoint:
    """The law of the tokens at two places (a `PairJoint`), or at three and more (a `BlockJoint`).

    `candidates="auto"` takes all tokens where that is cheap, else as many of the likeliest as can be asked in seconds.
    """
    if len(places.at) == 1:
        text = quoted(places.encoded.text)
        raise BesagError(f"{text} has one place only, and a joint needs two or more: fill answers for one")
    if len(places.at) == 2:
        CONSTRUCTIONS.refuse_unknown("joint", OWN, method, options)
        return pair_joint(engine, places, method, outcomes=outcomes, candidates=candidates, **options)
    refuse_method(places, method)
    refuse_unknown(f"joint() of {len(places.at)} places", [*OWN, *BLOCK_OPTIONS[method]], options)
    return block_joint(engine, places, method, outcomes=outcomes, candidates=candidates, **options)


def pair_joint(
    engine: Engine,
    places: Places,
    method: str = "ag",
    *,
    outcomes: Kind = "text",
    candidates: Candidates | Literal["auto"] = "auto",
    **options: Any,
) -> PairJoint:
    """The joint of two places by any construction."""
    model = engine.conditionals
    how = _construction(engine, places, method, options)  # a wrong name is known before the work is done
    if isinstance(candidates, str) and candidates == "auto":
        candidates = automatic(model, places)
    found = unaries(engine, places, outcomes=outcomes, candidates=candidates)
    dtype = dtype_name(model.dtype)
    return PairJoint.build(places, found, how, vocabulary=model.vocabulary, model=model.name, dtype=dtype)


def refuse_method(places: Places, method: str) -> None:
    """Three places and more know some constructions only."""
    if len(places.at) > 2 and CONSTRUCTIONS.find(method).name not in BLOCK_METHODS:
        known = " or ".join(map(repr, BLOCK_METHODS))
        raise BesagError(f"{len(places.at)} places have a joint by {known} only, not by {method!r}")


def _construction(engine: Engine, places: Places, method: str, options: dict[str, Any]) -> Construction:
    """With the pivot of hcb, a word of the first place, read there."""
    pivot = options.get("pivot")
    if method == "hcb" and isinstance(pivot, str) and pivot not in ("both", "one"):
        [token] = token_ids(engine.conditionals.vocabulary, places.encoded, places.positions[0], [pivot])
        options = {**options, "pivot": token}
    return construction(method, **options)
