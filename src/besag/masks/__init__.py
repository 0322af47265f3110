"""Laws of which places to hide. The same law serves a loss, a sampler, a bound and the theory.

One file a law; importing this package makes all of them known to `LAWS`.
"""

from __future__ import annotations

from typing import Any

from besag.checks import checked
from besag.masks import (
    adaptive,
    content,
    entities,
    error_aware,
    frequency,
    importance,
    informask,
    linguistic_entities,
    loss_weighted,
    ngram,
    pmi,
    spaced,
    span,
    uniform,
    whole_word,
)
from besag.masks.law import LAWS, Adaptive, MaskLaw, Statistics
from besag.masks.masking import Corrupted, Masking
from besag.masks.passages import Passages
from besag.masks.rates import Rate, rate_named
from besag.masks.replacement import Replacement, ordinary_ids
from besag.masks.subset import uniform_subsets

__all__ = [
    "LAWS",
    "Adaptive",
    "Corrupted",
    "Law",
    "Masking",
    "Passages",
    "Rate",
    "Replacement",
    "Statistics",
    "adaptive",
    "content",
    "entities",
    "error_aware",
    "frequency",
    "importance",
    "informask",
    "law",
    "linguistic_entities",
    "loss_weighted",
    "ngram",
    "ordinary_ids",
    "pmi",
    "rate_named",
    "spaced",
    "span",
    "uniform",
    "uniform_subsets",
    "whole_word",
]


@checked
def law(name: str, **options: Any) -> MaskLaw:
    """The law of this name; its fields are its options, and others are refused.

    >>> law("span", longest=5)
    Span(chance=0.2, longest=5, at='word')
    """
    return LAWS.find(name)(**options)
