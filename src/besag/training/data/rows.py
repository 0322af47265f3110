"""Documents out of rows with named fields: JSON lines, Parquet, names of `datasets`.

A row's text stands in one field, and the spans that were given for it (entities, errors) may stand in another. What is
wrong with a row is told with its file and line. Knows no files of plain text, and no tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from besag.errors import BesagError, nearest, require
from besag.training.recipe import Data


class Document(NamedTuple):
    text: str  # paragraphs are lines
    spans: list[tuple[int, int]] | None  # given spans (entities, errors), in characters, in order; None: none given
    origin: str  # for messages: "corpus/a.txt, line 17"


def from_json(lines: Iterable[tuple[int, str]], name: str, data: Data) -> Iterator[Document]:
    """One object a line; lines come with their numbers."""
    for number, text in lines:
        if not text.strip():
            continue
        origin = f"{name}, line {number}"
        try:
            row = json.loads(text)
        except json.JSONDecodeError as failure:
            where = f"{failure.msg}, at character {failure.pos + 1}"
            raise BesagError(f"{origin} is no JSON: {where}. Each line must be one object.") from None
        except RecursionError:
            raise BesagError(f"{origin} is no JSON that can be read: it is nested too deep.") from None
        if not isinstance(row, dict):
            raise BesagError(f"{origin} must be an object such as {{{data.field!r}: …}}, not {text[:60]!r}.")
        yield from document(row, origin, data)


def from_parquet(name: str, data: Data) -> Iterator[Document]:
    parquet: Any = require("pyarrow.parquet", "bulk")
    arrow: Any = require("pyarrow", "bulk")
    wanted = [data.field, *([data.spans] if data.spans else [])]
    number = 0
    try:
        with parquet.ParquetFile(name) as table:
            known = table.schema_arrow.names
            for field in wanted:
                if field not in known:
                    guess = nearest(field, known)
                    raise BesagError(f"{name} has no field {field!r}, it has {', '.join(known)}.{guess}")
            for batch in table.iter_batches(batch_size=1024, columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    yield from document(row, f"{name}, row {number}", data)
    except (OSError, arrow.ArrowException) as failure:
        why = _first_line(failure)
        raise BesagError(f"{name} cannot be read, it is damaged or no Parquet file: {why}") from failure


def from_dataset(name: str, data: Data) -> Iterator[Document]:
    datasets: Any = require("datasets", "train")
    try:
        rows = datasets.load_dataset(name, split=data.split, streaming=data.stream)
    except Exception as failure:  # whatever a dataset's own code, its files or the network may raise
        asked = f"data.dataset = {name!r} with data.split = {data.split!r}"
        raise BesagError(f"{asked} cannot be loaded: {_first_line(failure)}") from failure
    for number, row in enumerate(rows, start=1):
        yield from document(row, f"{name}[{data.split}], row {number}", data)


def document(row: dict[str, Any], origin: str, data: Data) -> Iterator[Document]:
    """The document of one row; none where its text is empty."""
    if data.field not in row:
        raise BesagError(f"{origin} has no field {data.field!r}, it has {', '.join(row)}.{nearest(data.field, row)}")
    text = row[data.field]
    if text is None:
        return
    if not isinstance(text, str):
        raise BesagError(f"{origin}: the field {data.field!r} must be text, not {repr(text)[:60]}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as failure:
        raise BesagError(
            f"{origin}: character {failure.start} of its text is half of a surrogate pair, which is no character."
        ) from None
    if text.strip():
        given = None if data.spans is None or data.spans not in row else _spans(row[data.spans], text, origin)
        yield Document(text, given, origin)


def _spans(given: Any, text: str, origin: str) -> list[tuple[int, int]]:
    if given is not None and not isinstance(given, list | tuple):
        raise BesagError(f"{origin}: its spans must be a list such as [[0, 4], [9, 12]], not {repr(given)[:60]}.")
    spans: list[tuple[int, int]] = []
    for entry in sorted(given or (), key=lambda pair: tuple(pair) if _is_span(pair) else (-1, -1)):
        start, end = entry if _is_span(entry) else (-1, -1)
        floor = spans[-1][1] if spans else 0
        if not floor <= start < end <= len(text):
            raise BesagError(
                f"{origin}: {entry!r} is no [start, end] in its {len(text)} characters after character {floor}; "
                "spans may not overlap."
            )
        spans.append((start, end))
    return spans


def _is_span(entry: Any) -> bool:
    """Two whole numbers."""
    return isinstance(entry, list | tuple) and len(entry) == 2 and all(type(part) is int for part in entry)


def _first_line(failure: Exception) -> str:
    return (str(failure).strip() or type(failure).__name__).splitlines()[0]
