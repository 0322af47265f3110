"""A template, as "{premise} So {hypothesis} Is it? {target}.": columns of a row in braces, and a gap for an answer.

    columns(template)            which columns it wants
    around(template, row)        what stands before the gap, and after it
    filled(template, row)        a text without a gap

The gap is written {target}, as in recipes, or [MASK], as in a text. What a column holds is text, braces and all. Knows
no model: how an answer is hidden, asked and learned is others' affair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from besag.errors import BesagError, nearest, quoted

GAP, TARGET = "[MASK]", "{target}"
FIELDS = re.compile(r"\{(\w+)\}")


def columns(template: str) -> list[str]:
    """The columns that are named, each once.

    >>> columns("{text} It was {target}. {text}")
    ['text']
    """
    return [name for name in dict.fromkeys(FIELDS.findall(template)) if name != TARGET[1:-1]]


def around(template: str, row: Mapping[str, object]) -> tuple[str, str]:
    """What stands before and after the gap.

    >>> around("{text} It was {target}.", {"text": "A long film."})
    ('A long film. It was ', '.')
    """
    parts = with_gap(template).split(GAP)
    if len(parts) != 2:
        raise BesagError(f"template={quoted(template)}: write {GAP} or {TARGET} once, where the answer stands")
    before, after = (filled(part, row) for part in parts)
    return before, after


def filled(template: str, row: Mapping[str, object]) -> str:
    """The text with its columns written in, all at once: braces that a column holds are text."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name not in row:
            raise BesagError(f"the template wants {{{name}}}, and a row has {', '.join(row)}.{nearest(name, row)}")
        if row[name] is None:
            raise BesagError(f"the template wants {{{name}}}, and {quoted(dict(row))} has nothing there")
        return str(row[name])

    return FIELDS.sub(value, template)


def with_gap(template: str) -> str:
    """The gap as [MASK], however it was written."""
    return template.replace(TARGET, GAP)
