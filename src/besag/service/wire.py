"""Results over the wire, whole: what `besag.connect` reads back is the object that `lm` would have given.

Numbers go as they are, arrays and tensors as their bytes, objects as their fields. Only classes that stand here are
made of what arrives, so nothing that is sent can run. A vocabulary is not sent: whoever reads has one of the model.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from besag.errors import BesagError, quoted
from besag.places.tokens import Token
from besag.results.status import Status
from besag.vocabulary import Encoded, Vocabulary

TYPE = "application/vnd.besag+json"
KINDS = "$"
MOST_BYTES = 64 * 2**20  # of an array


@cache
def classes() -> dict[str, Any]:
    """What may be sent, by name."""
    from besag.diagnostics.dependence import DependenceMap
    from besag.fills.fill import Fill
    from besag.joints.block import BlockJoint, Outside
    from besag.joints.law import JointLaw
    from besag.joints.pair import Pair, PairJoint
    from besag.joints.registry import Built
    from besag.joints.unaries import Lost, Unaries
    from besag.places.filling import Filling
    from besag.places.places import Places
    from besag.samplers.chain import Chain
    from besag.scores.choice import Choice
    from besag.scores.score import Score
    from besag.translation.choosing import Hypothesis
    from besag.translation.tracing import Piece, Step
    from besag.translation.translated import Translation, Translations

    known = (
        BlockJoint, Built, Chain, Choice, DependenceMap, Encoded, Fill, Filling, Hypothesis, JointLaw, Lost, Outside,
        Pair, PairJoint, Piece, Places, Score, Step, Translation, Translations, Unaries,
    )  # fmt: skip
    return {kind.__name__: kind for kind in known} | {f"construction {name}": kind for name, kind in _constructions()}


def _constructions() -> list[tuple[str, Any]]:
    from besag.joints.registry import CONSTRUCTIONS

    return list(CONSTRUCTIONS.items())


@cache
def _names() -> dict[Any, str]:
    return {kind: name for name, kind in classes().items()}


def pack(value: Any) -> Any:
    """Anything that a result is made of, as JSON can write it."""
    if value is None or isinstance(value, bool | int) or type(value) is str:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {KINDS: "float", "value": str(float(value))}
    if isinstance(value, Status):
        return {KINDS: "status", "value": value.value}
    if isinstance(value, Token):
        return {KINDS: "token", "text": str(value), "id": value.id}
    if isinstance(value, torch.Tensor):
        return {**_array(value.detach().cpu().numpy()), KINDS: "tensor"}
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return pack(value.item())
    if isinstance(value, Vocabulary):
        return {KINDS: "vocabulary"}
    if type(value) in _names():
        names = [one.name for one in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else value._fields
        return {KINDS: _names()[type(value)], "fields": {name: pack(getattr(value, name)) for name in names}}
    if isinstance(value, tuple):
        return {KINDS: "tuple", "items": [pack(one) for one in value]}
    if isinstance(value, list):
        return [pack(one) for one in value]
    if isinstance(value, Mapping):
        return {KINDS: "mapping", "items": [[pack(name), pack(one)] for name, one in value.items()]}
    raise BesagError(f"a value of type {type(value).__name__} cannot be sent")


def _array(array: np.ndarray) -> dict[str, Any]:
    if array.nbytes > MOST_BYTES:
        raise BesagError(
            f"an array of {array.nbytes:,} bytes is part of this result, and {MOST_BYTES:,} are sent at most: say "
            "candidates= to ask about fewer tokens"
        )
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {KINDS: "array", "dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def unpack(value: Any, vocabulary: Vocabulary | None = None) -> Any:
    """What was packed."""
    if isinstance(value, list):
        return [unpack(one, vocabulary) for one in value]
    if not isinstance(value, dict):
        return value
    match value.get(KINDS):
        case "float":
            return float(value["value"])
        case "status":
            return Status(value["value"])
        case "token":
            token = Token(value["text"])
            token.id = int(value["id"])
            return token
        case "array" | "tensor" as kind:
            read = np.frombuffer(bytearray(base64.b64decode(value["data"])), np.dtype(value["dtype"]))
            array = read.reshape(value["shape"])
            return array if kind == "array" else torch.from_numpy(array)
        case "vocabulary":
            return vocabulary
        case "tuple":
            return tuple(unpack(one, vocabulary) for one in value["items"])
        case "mapping":
            return {unpack(name, vocabulary): unpack(one, vocabulary) for name, one in value["items"]}
        case str() as name if name in classes():
            kind = classes()[name]
            given = {field: unpack(one, vocabulary) for field, one in value["fields"].items()}
            return kind(**given)
    raise BesagError(f"{quoted(value.get(KINDS))} is no part of a result that this version of besag knows")
