"""TOML tables and dataclasses: one is filled from the other, strictly, and back again.

Knows types and nested keys. Refuses to know what any key means.
"""

from __future__ import annotations

import dataclasses
import math
import os
import tomllib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from besag.errors import BesagError, nearest, quoted

Key = tuple[str, ...]  # ("masking", "rate")
REMOVED = object()  # an override without a value: the default again
DEEPEST = 32  # tables and lists within one another; no setting of any network is nested so deep
LARGEST = 10**9  # of a whole number that has no bounds of its own


class Bounds(NamedTuple):
    """Where a number must lie."""

    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False

    def hold(self, value: float) -> bool:
        """Is it there? What is not finite is nowhere."""
        if isinstance(value, float) and not math.isfinite(value):
            return False
        above = self.low is None or value > self.low or (value == self.low and not self.low_open)
        below = self.high is None or value < self.high or (value == self.high and not self.high_open)
        return above and below

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            out = [_said(end) for end, is_open in ((self.low, self.low_open), (self.high, self.high_open)) if is_open]
            between = f" between {_said(self.low)} and {_said(self.high)}"
            return between + (f", not {' or '.join(out)} itself" if out else "")
        if self.low is not None:
            return f" above {_said(self.low)}" if self.low_open else f", {_said(self.low)} or more"
        return ""


def _said(end: float) -> str:
    return f"{end:,}" if isinstance(end, int) else f"{end:g}"


ANYWHERE = Bounds()
WHOLE = Bounds(-LARGEST, LARGEST)


# ---- from a file to tables


def load(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    name = str(path)
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError as failure:
        folder = Path(path).parent
        beside = [file.stem for file in folder.glob("*.toml")] if folder.is_dir() else []
        guess = nearest(Path(path).stem, beside).replace("'?", ".toml'?")
        raise BesagError(f"there is no recipe {name!r}.{guess}") from failure
    except OSError as failure:
        raise BesagError(f"the recipe {name!r} cannot be read: {failure.strerror}") from failure
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as failure:
        raise BesagError(f"{name} is not UTF-8: byte {failure.start} is {content[failure.start]:#04x}") from failure
    except (ValueError, RecursionError) as failure:  # ValueError: no TOML, or a whole number of thousands of digits
        deep = isinstance(failure, RecursionError)
        why = "not TOML that can be read: it is nested too deep" if deep else f"not TOML: {failure}"
        raise BesagError(f"{name} is {why}") from (None if deep else failure)
    if not table:
        raise BesagError(f"{name} is empty: `besag train init` writes a recipe with every key")
    return table


def override(text: str) -> tuple[Key, Any]:
    """A key and its value from "masking.rate=0.3"."""
    if not isinstance(text, str):
        raise BesagError(f"changes has {quoted(text)}: write 'section.key=value', such as 'masking.rate=0.3'")
    name, equals, value = text.partition("=")
    key = tuple(part.strip() for part in name.split("."))
    if not equals or len(key) < 2 or not all(key):
        raise BesagError(f"--set {quoted(text)}: write section.key=value, such as masking.rate=0.3")
    if not value.strip():
        return key, REMOVED
    try:
        read = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return key, value.strip()
    except (ValueError, RecursionError) as failure:
        why = "it is nested too deep" if isinstance(failure, RecursionError) else str(failure)
        raise BesagError(f"--set {quoted(text)}: {why}") from None
    found = read.get("value")
    simple = len(read) == 1 and isinstance(found, bool | int | float | str | list | dict)
    return key, found if simple else value.strip()


def overrides(changes: Sequence[str] | Mapping[str, Any]) -> list[tuple[Key, Any]]:
    """Keys and values from a list of such texts, or from a table {"masking.rate": 0.3}."""
    if isinstance(changes, str) or not isinstance(changes, Mapping | Sequence):
        right = "give a list, ['masking.rate=0.4'], or a table, {'masking.rate': 0.4}"
        raise BesagError(f"changes={quoted(changes)}: {right}")
    if isinstance(changes, Mapping):
        return [(tuple(key.split(".")), value) for key, value in copied(changes, "changes").items()]
    return [override(text) for text in changes]


def of_file(path: str | Path, paths: Sequence[str], paths_or_names: Sequence[str], output: str) -> dict[str, Any]:
    """The tables of a TOML file, its paths relative to the working folder; `output` is run.output if it says none."""
    table: dict[str, Any] = copied(load(path), str(path))
    where = os.path.dirname(path)

    def here(name: str) -> str:
        return os.path.normpath(os.path.join(where, name))

    walk_paths(table, paths, paths_or_names, here, leads=lambda name: os.path.exists(here(name)))
    if isinstance(table.get("run", {}), dict):
        table.setdefault("run", {}).setdefault("output", here(output))
    return table


def put(table: dict[str, Any], given: Sequence[tuple[Key, Any]], *, one_of: Sequence[str] = ()) -> None:
    """Write overrides into the tables. One of the keys `one_of` takes the place of the others."""
    named = {".".join(key) for key, _ in given}
    if named & set(one_of):
        for key in set(one_of) - named:
            section, _, name = key.partition(".")
            if isinstance(table.get(section), dict):
                table[section].pop(name, None)
    for path, value in given:
        place = table
        for part in path[:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise BesagError(f"--set {'.'.join(path)}: {part} is {quoted(place)}, which has no keys of its own")
        if value is REMOVED:
            place.pop(path[-1], None)
        else:
            place[path[-1]] = value


def copied(value: Any, source: str, key: str = "", depth: int = 0) -> Any:
    """Tables, lists and what is in them, as TOML could have said it: nothing nested too deep, names and texts alone.

    Everything that a recipe is made from passes here, so whatever comes after may walk through it without care.
    """
    if depth > DEEPEST:
        raise BesagError(f"{source}: {key.split('.')[0]} is nested more than {DEEPEST} deep")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise BesagError(f"{source}: {quoted(name)} is no name of a key{f' of {key}' if key else ''}")
            _refuse_odd(name, source, key or "a name")
        return {name: copied(part, source, f"{key}.{name}" if key else name, depth + 1) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [copied(part, source, key, depth + 1) for part in value]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        _refuse_odd(value, source, key)
    return value


def _refuse_odd(text: str, source: str, key: str) -> None:
    """Neither files nor systems take these."""
    if "\0" in text:
        raise BesagError(f"{source}: {key} = {quoted(text)} holds the character NUL, which no text and no path may")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BesagError(
            f"{source}: {key} = {quoted(text)} holds half of a surrogate pair, which is no character"
        ) from None


# ---- from tables to dataclasses


def fill(kind: type[Any], table: Mapping[str, Any], source: str, bounds: Mapping[str, Bounds]) -> Any:
    """A dataclass of dataclasses from a table of tables."""
    hints = typing.get_type_hints(kind)
    sections: dict[str, Any] = {}
    for name, content in table.items():
        if name not in hints:
            raise BesagError(_unknown(source, name, hints, kind))
        if not isinstance(content, Mapping):
            raise BesagError(f"{source}: {name} = {quoted(content)}: a table is needed, [{name}] and its keys below it")
        sections[name] = _section(hints[name], name, content, source, bounds)
    return kind(**sections)


def _section(kind: type[Any], section: str, table: Mapping[str, Any], source: str, bounds: Mapping[str, Bounds]) -> Any:
    hints = typing.get_type_hints(kind)
    values = {}
    for name, value in table.items():
        key = f"{section}.{name}"
        if name not in hints:
            guess = nearest(name, hints)
            raise BesagError(f"{source}: there is no key {quoted(key)}.{guess} [{section}] has {', '.join(hints)}")
        where = bounds.get(key, ANYWHERE)
        try:
            values[name] = _convert(value, hints[name], where)
        except _Unfit:
            raise BesagError(f"{source}: {key} = {quoted(value)}: {expected(hints[name], where)} is needed") from None
    return kind(**values)


class _Unfit(Exception):
    """A value that a type or its bounds do not allow."""


def _convert(value: Any, hint: Any, bounds: Bounds) -> Any:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        [hint] = [part for part in typing.get_args(hint) if part is not type(None)]
        return None if value is None else _convert(value, hint, bounds)
    if origin is Literal:
        if not isinstance(value, str) or value not in typing.get_args(hint):
            raise _Unfit
        return value
    if origin is tuple:
        return _several(value, typing.get_args(hint), bounds)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise _Unfit
        return dict(value)
    fits: tuple[type, ...] = (int, float) if hint is float else (hint,)
    if not isinstance(value, fits) or (isinstance(value, bool) and hint is not bool):
        raise _Unfit
    if hint is bool or hint is str:
        return value
    try:
        number = hint(value)
    except OverflowError:  # a whole number beyond every float
        raise _Unfit from None
    if not (WHOLE if hint is int and bounds is ANYWHERE else bounds).hold(number):
        raise _Unfit
    return number


def fits(value: Any, hint: Any) -> bool:
    """Is this a value of that type? True for types that no file can hold: who takes them must look."""
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return any(fits(value, part) for part in parts)
    if hint not in (bool, int, float, str) and typing.get_origin(hint) is not Literal:
        return True
    try:
        _convert(value, hint, ANYWHERE)
    except _Unfit:
        return False
    return True


def _several(value: Any, kinds: tuple[Any, ...], bounds: Bounds) -> tuple[Any, ...]:
    if kinds[-1] is Ellipsis:
        parts = [value] if isinstance(value, str) else value
        kinds = (kinds[0],) * (len(parts) if isinstance(parts, list | tuple) else 0)
    else:
        parts = value
    if not isinstance(parts, list | tuple) or len(parts) != len(kinds):
        raise _Unfit
    return tuple(_convert(part, kind, bounds) for part, kind in zip(parts, kinds, strict=True))


def expected(hint: Any, bounds: Bounds = ANYWHERE) -> str:
    """In words: what a key takes."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        [hint] = [part for part in parts if part is not type(None)]
        return expected(hint, bounds)
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is dict:
        return "a table"
    if origin is tuple:
        count = "a list of" if parts[-1] is Ellipsis else f"a list of {len(parts)}"
        return f"{count} {'texts' if parts[0] is str else f'numbers{bounds}'}"
    name = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[hint]
    return f"{name}{bounds}"


def _unknown(source: str, name: str, sections: Mapping[str, Any], kind: type[Any]) -> str:
    """Of a top-level name that is no section: perhaps it is a key that stands outside its section."""
    homes = [section for section, part in typing.get_type_hints(kind).items() if name in typing.get_type_hints(part)]
    if homes:
        return f"{source}: {quoted(name)} stands outside its section: write it below [{'] or ['.join(homes)}]"
    return f"{source}: there is no section {quoted(name)}.{nearest(name, sections)} There are: {', '.join(sections)}"


# ---- from dataclasses to tables


def as_table(thing: Any) -> dict[str, Any]:
    """A dataclass of dataclasses as a table of tables, lists for tuples; None stays None."""
    table: dict[str, Any] = _plain(dataclasses.asdict(thing))
    return table


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Every value under its whole key, "model.config.hidden_size"."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return found


# ---- paths


def walk_paths(
    table: dict[str, Any],
    paths: Sequence[str],
    paths_or_names: Sequence[str],
    change: Callable[[str], str],
    leads: Callable[[str], bool] = os.path.exists,
) -> None:
    """Change, in place, every path under the keys `paths`, and under `paths_or_names` those that lead somewhere.

    What is not of the right type is left alone: it is refused later, as it was written.
    """
    for key in (*paths, *paths_or_names):
        section, _, name = key.partition(".")
        content = table.get(section)
        if isinstance(content, dict) and name in content:
            sure = (lambda text: True) if key in paths else leads
            content[name] = _changed(content[name], change, sure)


def _changed(value: Any, change: Callable[[str], str], leads: Callable[[str], bool]) -> Any:
    if isinstance(value, dict):  # options: a word among them may happen to be the name of a file
        written = lambda text: (os.sep in text or "." in text) and leads(text)  # noqa: E731
        return {name: _changed(part, change, written) for name, part in value.items()}
    if isinstance(value, list):
        return [_changed(part, change, leads) for part in value]
    if not isinstance(value, str) or value in ("", "-"):
        return value
    plain = value.startswith(("./", "../", os.sep))  # a hub name looks like a path, too; this does not
    return change(value) if plain or leads(value) else value
