"""Joints of two places for tests of what is done with one: on symbols, or on tokens of the embedded model."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
from tests.joints.tables import incompatible

from besag import models
from besag.joints import construction
from besag.joints.pair import PairJoint
from besag.joints.unaries import Lost
from besag.places.places import find
from besag.vocabulary import Vocabulary


def make(
    method: str = "ag",
    m: int = 5,
    k: int = 4,
    seed: int = 0,
    gold: bool = True,
    symbols: list[str] | None = None,
    **options: Any,
) -> PairJoint:
    """Places 1 and 2 of "s0 s1 s2": m of the symbols may stand at the first, k at the second."""
    symbols = symbols or [f"s{number}" for number in range(max(m, k))]
    vocabulary = Vocabulary.of_symbols(symbols)
    text = " ".join(symbols[:3] if gold and len(symbols) > 2 else [symbols[0], "[MASK]", "[MASK]"])
    places = find(vocabulary, text, (1, 2))
    unaries = replace(incompatible(m, k, seed), gold=(1, 2) if places.gold else None)
    return PairJoint.build(
        places, unaries, construction(method, **options), vocabulary=vocabulary, model="tiny", dtype="float64"
    )


@functools.cache
def embedded_vocabulary() -> Vocabulary:
    from transformers import AutoTokenizer

    return Vocabulary(AutoTokenizer.from_pretrained(models.path()))


def worded(
    text: str, positions: tuple[Any, ...], a: list[str], b: list[str], method: str = "ag", **options: Any
) -> PairJoint:
    """Tokens of the embedded model as candidates; those of the text are its gold where they are among them."""
    vocabulary = embedded_vocabulary()
    places = find(vocabulary, text, positions)
    ids_a, ids_b = (np.array([vocabulary.id(token) for token in tokens]) for tokens in (a, b))
    gold = None
    if places.gold is not None:
        gold = ids_a.tolist().index(places.gold[0]), ids_b.tolist().index(places.gold[1])
    unaries = incompatible(len(a), len(b), 3)
    unaries = replace(unaries, ids_a=ids_a, ids_b=ids_b, gold=gold, lost=Lost(0.069, 0.048, 0.1, 0.1))
    return PairJoint.build(
        places, unaries, construction(method, **options), vocabulary=vocabulary, model="tiny", dtype="float32"
    )


def casino(method: str = "ag", **options: Any) -> PairJoint:
    a, b = ["▁man", "▁dog", "man", "▁car"], ["▁is", "is", "▁was"]
    return worded("The man is at the casino.", ("man", "is"), a, b, method, **options)
