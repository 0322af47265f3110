"""A model as a request means it: given the source of the body, if any, and what is before it at a time."""

from __future__ import annotations

from collections.abc import Callable

from besag.conditionals.contract import takes_source
from besag.errors import BesagError
from besag.language_model import LanguageModel
from besag.service import weighing

Weighed = Callable[[weighing.Sight], int]


def given(lm: LanguageModel, source: str | None) -> LanguageModel:
    if source is not None:
        return lm.given(source)
    if takes_source(lm.conditionals):
        raise BesagError(f"{lm.name!r} answers about a text given its source: say `source` in the body")
    return lm


def weighed(weight: Weighed, source: str | None) -> Callable[[LanguageModel], int]:
    """What a request weighs, once it is known how much its model sees at a time."""
    beside = 0 if source is None else weighing.tokens(source)

    def of(lm: LanguageModel) -> int:
        network = lm.conditionals
        seen = network.max_length, beside, lm.vocabulary.mask_token, network.width, network.device.type
        return weight(weighing.Sight(*seen, causal=network.sees == "left"))

    return of


def any_source(lm: LanguageModel) -> LanguageModel:
    """The model given something, where it can be asked nothing else. An exact law knows some sources alone."""
    known = getattr(lm.conditionals, "sources", {"a": None})
    return lm.given(next(iter(known))) if takes_source(lm.conditionals) else lm
