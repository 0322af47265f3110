"""Regions of a text, as users write them: cut at a sign in the text, listed or named in JSON, or given as spans.

    "The cat | sat on | the mat."            cut at "|": white space around the sign is one space, none stays none
    ["The cat", "sat on", "the mat."]        listed: joined with a space; a part that is empty is an empty region
    {"np": "The cat", "verb": "sat on"}      named
    "0-7,8-14"                               spans of characters from 0, the end not within, in order

Knows characters; refuses to know tokens, and what a region is for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from besag.errors import BesagError, quoted

_SPAN = re.compile(r"\s*(\d{1,9})\s*[-:]\s*(\d{1,9})\s*")


class Regions(NamedTuple):
    """Stretches of a text in order, each with its label."""

    labels: Sequence[str | int]
    spans: Sequence[tuple[int, int]]
    tiling: bool  # are they all of the text, so that every token belongs to one of them?


def cut(text: str, sign: str) -> tuple[str, Regions]:
    """The text without the signs, and the regions between them, numbered from 1.

    >>> cut("The cat | sat|. ", "|")
    ('The cat sat.', Regions(labels=[1, 2, 3], spans=[(0, 7), (8, 11), (11, 12)], tiling=True))
    """
    parts = text.split(sign)
    apart = [left[-1:].isspace() or right[:1].isspace() for left, right in pairwise(parts)]
    return _tiled([part.strip() for part in parts], [" " if one else "" for one in apart], range(1, len(parts) + 1))


def listed(parts: Sequence[Any] | Mapping[str, Any], where: str) -> tuple[str, Regions]:
    """The parts with a space between them, and which part is where; labels are names, or numbers from 1.

    >>> listed(["The cat", "", "sat."], "here")[0]
    'The cat sat.'
    """
    values = list(parts.values() if isinstance(parts, Mapping) else parts)
    for part in values:
        if not isinstance(part, str):
            raise BesagError(f"{where}: a region is a text, and {quoted(part)} is none")
    labels = list(parts) if isinstance(parts, Mapping) else range(1, len(values) + 1)
    return _tiled([part.strip() for part in values], [" "] * (len(values) - 1), labels)


def spans(said: object, text: str, where: str) -> Regions:
    """What a cell says of spans: "3-7,8-12", or in JSON a list of [start, end].

    >>> spans("0-3, 4-7", "The cat", "here").spans
    [(0, 3), (4, 7)]
    """
    found = list[tuple[int, int]]()
    for one, (start, end) in _written(said) if isinstance(said, str) else _pairs(said, where):
        before = found[-1][1] if found else 0
        if not before <= start < end <= len(text):
            raise BesagError(
                f"{where}: {quoted(one)} is no span after character {before} within the {len(text)} of {quoted(text)}: "
                'write them in order, as in "3-7,8-12"'
            )
        found.append((start, end))
    return Regions([f"{start}-{end}" for start, end in found], found, tiling=False)


def _written(said: str) -> list[tuple[str, tuple[int, int]]]:
    """Each of "3-7,8-12", and what it says; a span that none can be where it says nothing of the kind."""
    matches = [(one, _SPAN.fullmatch(one)) for one in (said.split(",") if said.strip() else [])]
    return [(one, (int(match[1]), int(match[2])) if match else (-1, -1)) for one, match in matches]


def _pairs(said: object, where: str) -> list[tuple[object, tuple[int, int]]]:
    """[[3, 7], [8, 12]]: what JSON has instead of a text; nothing where there is nothing."""
    whole: list[Any] = [] if said is None else said if isinstance(said, list) else [said]
    for one in whole:
        if not isinstance(one, list) or len(one) != 2 or not all(type(at) is int for at in one):
            raise BesagError(f'{where}: {quoted(one)} is no span: write "3-7,8-12", or [[3, 7], [8, 12]] in JSON')
    return [(one, (one[0], one[1])) for one in whole]


def _tiled(parts: Sequence[str], between: Sequence[str], labels: Sequence[str | int]) -> tuple[str, Regions]:
    """Parts and what stands between each and the next, as one text; at its beginning and end there is no space."""
    text, found = "", list[tuple[int, int]]()
    space = False
    for part, apart in zip(parts, [*between, ""], strict=True):
        text += " " * bool(space and text and part) + part
        found.append((len(text) - len(part), len(text)))
        space = (space and not part) or apart == " "
    return text, Regions(list(labels), found, tiling=True)
