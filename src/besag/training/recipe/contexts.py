"""Whether headers and documents that belong together make sense: fields that are there, keys that need one another.

What is made for passages of one document alone (streams, standard input, filters …) is refused beside them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from besag.errors import BesagError, nearest, quoted
from besag.training.recipe.values import fits

if TYPE_CHECKING:
    from besag.training.recipe import Data, Recipe

KINDS = ("contiguous", "random", "linked")  # how the second of two pieces belongs to the first; their numbers
FIELD = re.compile(r"\{([^{}]+)\}")


def check(recipe: Recipe) -> None:
    from besag.training.recipe import Data, in_context

    data = recipe.data
    _check_hidden(recipe)
    _check_together(data)
    if data.context != "pairs" and data.partners != Data.partners:
        raise BesagError(f"data.partners = {quoted(list(data.partners))} is of data.context = 'pairs': set it")
    if in_context(data):
        _refuse_beside(recipe)
    if data.context == "pairs":
        _check_partners(data.partners)


def header_fields(header: str) -> list[str]:
    """The fields of a row that a header writes.

    >>> header_fields("{date}, {meta.title}:")
    ['date', 'meta.title']
    """
    return [name for name, _ in header_parts(header) if name is not None]


def header_parts(header: str) -> Iterator[tuple[str | None, str]]:
    """A header as its parts: (field, ""), or (None, what is written as it is)."""
    for number, part in enumerate(FIELD.split(header)):
        if number % 2:
            yield part, ""
        elif part:
            yield None, part


def _check_hidden(recipe: Recipe) -> None:
    from besag.training.objectives import OBJECTIVES

    data, objective = recipe.data, recipe.objective.name
    named = header_fields(data.header or "")
    if data.header is not None and not named:
        raise BesagError(
            f"data.header = {quoted(data.header)} names no field of a row: write its name in braces, '{{date}}'"
        )
    for field, chance in data.hide.items():
        if field not in named:
            raise BesagError(f"data.hide.{field} is of no field in data.header.{nearest(field, named)}")
        if not fits(chance, float) or not math.isfinite(chance) or not 0 <= chance <= 1:
            raise BesagError(f"data.hide.{field} = {quoted(chance)}: a chance from 0 to 1 is needed")
    if any(data.hide.values()) and not OBJECTIVES.find(objective).masks:
        raise BesagError(
            f"data.hide hides fields beside a law of masks, but the objective {objective!r} hides tokens in its own "
            "way: leave data.hide out, or give each field 0, to be always shown"
        )


def _check_together(data: Data) -> None:
    said = [key for key in ("group", "links") if getattr(data, key) is not None]
    if len(said) == 2:
        raise BesagError("data.group and data.links both say which documents belong together: give one of the two")
    if said and data.context == "alone":
        raise BesagError(
            f"data.{said[0]} says which documents belong together, and data.context = 'alone' puts none beside "
            "another: set it to 'together' or 'pairs'"
        )
    if data.context != "alone" and not said and not (data.context == "pairs" and "linked" not in data.partners):
        raise BesagError(
            f"data.context = {data.context!r} needs to know which documents belong together: name a field in "
            "data.group, or one in data.links"
        )


def _check_partners(partners: tuple[str, ...]) -> None:
    for kind in partners:
        if kind not in KINDS:
            raise BesagError(
                f"data.partners: there is no {quoted(kind)} among {', '.join(KINDS)}{nearest(kind, KINDS)}"
            )
    if not partners or len(set(partners)) < len(partners):
        raise BesagError(f"data.partners = {quoted(list(partners))}: name some of {', '.join(KINDS)}, each once")


def _refuse_beside(recipe: Recipe) -> None:
    data = recipe.data
    said = "data.header" if data.header is not None else f"data.context = {data.context!r}"
    others = {
        "data.source": bool(data.source), "data.source_field": data.source_field is not None,
        "data.train = '-'": "-" in data.train, "data.stream = true": data.stream,
        "data.densest": data.densest is not None,
    }  # fmt: skip
    for key, is_there in others.items():
        if is_there:
            raise BesagError(f"{key} does not go with {said}: leave one of them out")
