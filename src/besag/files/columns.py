"""Columns by the names that users give them: a name, a number counted from 1, or a path into nested fields.

A path goes by dots: `hyps.text` is the field `text` of the field `hyps`, `hyps.0.text` that of the first in a list. A
field whose own name has dots is found first. Knows rows as mappings, and nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from besag.characters import is_text
from besag.errors import BesagError, nearest, quoted

SHOWN = 20  # columns that a message lists
_MISSING: Any = object()


def columns(names: Sequence[str], wanted: Sequence[str], where: str, said: str = "no column {}") -> list[str]:
    """What the wanted columns are called in a table (or a first object) that has these names."""
    return [_named(names, one, where, said) for one in wanted]


def usual(names: Sequence[str], known: Sequence[str]) -> str | None:
    """The column that must be meant where none is named: the one with a known name, or the only one."""
    found = [name for name in known if name in names]
    return (found or list(names))[0] if len(found) == 1 or len(names) == 1 else None


def top(names: Sequence[str], column: str) -> str | None:
    """The field of a row in which a column lies: itself, or the first part of a path."""
    if column in names:
        return column
    parts = column.split(".")
    heads = (".".join(parts[:count]) for count in range(1, len(parts)))
    return next((head for head in heads if head in names), None)


def listed(names: Iterable[str]) -> str:
    """Names of columns for a message: on one line, and not all of a thousand."""
    every = [
        quoted(name) if name.split() != [name] or len(name) > 60 or not name.isprintable() else name for name in names
    ]
    return ", ".join([*every[:SHOWN], *([f"… ({len(every):,} in all)"] if len(every) > SHOWN else [])])


def has(values: Mapping[str, object], column: str, where: str) -> bool:
    return _follow(values, column, where) is not _MISSING


def value(values: Mapping[str, object], column: str, where: str) -> Any:
    """What stands in a column of a row."""
    found = _follow(values, column, where)
    if found is _MISSING and not values:
        raise BesagError(f"{where} is a text alone, and a column {column!r} is asked for: give a table")
    if found is _MISSING:
        raise BesagError(f"{where} has no {column!r}; it has {listed(values)}.{nearest(column, values)}")
    return found


def text(values: Mapping[str, object], column: str, where: str, lenient: bool = False) -> str:
    """The text in a column of a row; an empty one where there is none. `lenient`: also one that no encoding can write.

    JSON can say such a text, and a Parquet file can hold bytes that are none.
    """
    found = value(values, column, where)
    if found is not None and not isinstance(found, str):
        raise BesagError(f"{where}: {column!r} is {quoted(found)}, not a text")
    if found and not lenient and not is_text(found):
        raise BesagError(f"{where}: {column!r} holds half a surrogate pair, which no encoding can write")
    return found or ""


def context(values: Mapping[str, object], column: str, where: str) -> str | None:
    """The text in a column of a row that may lack it: None where it is missing, null or no text."""
    found = _follow(values, column, where)
    return found if isinstance(found, str) else None


def _named(names: Sequence[str], wanted: str, where: str, said: str) -> str:
    if top(names, wanted) is not None:
        return wanted
    if wanted.isdecimal() and len(wanted) <= 9 and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise BesagError(f"{said.format(repr(wanted))}: {where} has the columns {listed(names)}.{nearest(wanted, names)}")


def _follow(found: object, path: str, where: str) -> Any:
    """What a path leads to from here; _MISSING where it leads nowhere."""
    if isinstance(found, Mapping):
        if path in found:
            return found[path]
        head = top(list(found), path)
        return _MISSING if head is None else _follow(found[head], path[len(head) + 1 :], where)
    if isinstance(found, list | tuple):
        first, _, rest = path.partition(".")
        if not first.isdecimal():
            raise BesagError(f"{where}: there is a list of {len(found)} before {path!r}; say which, as in 0.{path}")
        if len(first) > 9 or int(first) >= len(found):
            return _MISSING
        return _follow(found[int(first)], rest, where) if rest else found[int(first)]
    return _MISSING
