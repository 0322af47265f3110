"""A recipe as TOML text. What a key means is in the annotation of its dataclass field."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Mapping
from typing import Any, Literal

WIDTH = 120
BARE = re.compile(r"[A-Za-z0-9_-]+")


def write(kind: type[Any], table: Mapping[str, Mapping[str, Any]], *, comments: bool) -> str:
    """The sections of `kind` from a table of tables. A key that is not set is written as a comment."""
    parts = []
    for section, part in typing.get_type_hints(kind).items():
        notes = explanations(part) if comments else {}
        choices = {name: _choices(hint) for name, hint in typing.get_type_hints(part).items()}
        lines, tables = [f"[{section}]"], []
        for name, content in table[section].items():
            note = " · ".join(filter(None, (choices[name] if comments else "", notes.get(name, ""))))
            if isinstance(content, Mapping):
                tables.append(_table(f"{section}.{name}", content, note))
                continue
            line = f"# {name} = …" if content is None else f"{name} = {value(content)}"
            lines.append(_noted(line, note))
        parts.append("\n".join(lines))
        parts += tables if comments else [text for text in tables if "=" in text]
    return "\n\n".join(parts) + "\n"


def _table(name: str, content: Mapping[str, Any], note: str) -> str:
    lines = [_noted(f"[{name}]", note)]
    lines += [
        f"# {_key(key)} = …" if entry is None else f"{_key(key)} = {value(entry)}" for key, entry in content.items()
    ]
    return "\n".join(lines)


def _noted(line: str, note: str) -> str:
    """A line with its note behind it, or above it where both together are too long."""
    if not note:
        return line
    whole = f"{line}  # {note}"
    return whole if len(whole) <= WIDTH else f"# {note}\n{line}"


def value(content: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, str):
        return json.dumps(content, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(content, float):
        return repr(content)  # 1e-08, inf and nan are TOML, too
    if isinstance(content, int):
        return str(content)
    if isinstance(content, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {value(part)}" for name, part in content.items()) + " }"
    return "[" + ", ".join(value(part) for part in content) + "]"


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else value(name)


def _choices(hint: Any) -> str:
    return " | ".join(typing.get_args(hint)) if typing.get_origin(hint) is Literal else ""


def explanations(kind: type[Any]) -> dict[str, str]:
    """Return what each annotated field of a dataclass means."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if typing.get_origin(hint) is typing.Annotated}
