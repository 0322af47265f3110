"""What formats share: one JSON document, a field that must be there, a number as files write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from besag.errors import BesagError, quoted
from besag.files.lines import lines_of
from besag.files.rows import parsed

_TENSOR = re.compile(r"tensor\(\s*([^,)\s]+)\s*(?:,[^)]*)?\)")  # as PyTorch writes a score, and ESPnet with it


def document(path: str) -> Any:
    """A whole file of JSON, in which no object has a name twice."""
    text = "\n".join(line for _, line in lines_of(path))
    if not text.strip():
        raise BesagError(f"{path} is empty: there is nothing to rescore")
    parsed(text, path)  # which knows what to say of what is no JSON

    def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise BesagError(f"{path} has two lists of the id {quoted(twice)}: an id names one utterance")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=once)


def text_field(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise BesagError(f"{where}: {name} is {quoted(value)}, and must be a text")
    return value


def number(written: object, where: str) -> float | None:
    """A score as a file writes it; None where there is nothing."""
    if written is None or written == "":
        return None
    inside = _TENSOR.fullmatch(written.strip()) if isinstance(written, str) else None
    try:
        if isinstance(written, bool):
            raise TypeError
        return float(inside[1] if inside else written)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise BesagError(f"{where}: the score {quoted(written)} is no number") from None
