"""Documents out of rows with named fields: those of a file (`besag.files`), and names of `datasets`.

A row's text stands in one field, and the spans that were given for it (entities, errors; parts of speech, with their
tags) may stand in others; each may be nested, as in `meta.spans`. What is wrong with a row is told with its file and
line. Knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from besag.errors import BesagError, quoted, require
from besag.files.columns import has, text, value
from besag.files.rows import Row
from besag.training.recipe import Data


class Document(NamedTuple):
    text: str  # paragraphs are lines
    spans: list[tuple[int, int]] | None  # given spans (entities, errors), in characters, in order; None: none given
    origin: str  # for messages: "corpus/a.txt, line 17"
    tags: list[tuple[int, int, str]] | None = None  # given tags, from where to where each, in order; None: none given


def from_rows(rows: Iterable[Row], data: Data) -> Iterator[Document]:
    """The documents of a file with columns; a row that is a text alone is its document."""
    for row in rows:
        yield from document({data.field: row.values} if isinstance(row.values, str) else row.values, row.where, data)


def from_dataset(name: str, data: Data) -> Iterator[Document]:
    datasets: Any = require("datasets", "train")
    try:
        rows = datasets.load_dataset(name, split=data.split, streaming=data.stream)
    except Exception as failure:  # whatever a dataset's own code, its files or the network may raise
        asked = f"data.dataset = {name!r} with data.split = {data.split!r}"
        raise BesagError(f"{asked} cannot be loaded: {_first_line(failure)}") from failure
    for number, row in enumerate(rows, start=1):
        yield from document(row, f"{name}[{data.split}], row {number}", data)


def document(row: Mapping[str, Any], origin: str, data: Data) -> Iterator[Document]:
    """The document of one row; none where its text is empty."""
    found = text(row, data.field, origin)
    if found.strip():
        spans, tags = (
            _listed(value(row, name, origin)) if name is not None and has(row, name, origin) else None
            for name in (data.spans, data.tags)
        )
        yield Document(
            found,
            None if spans is None else _spans(spans, found, origin),
            origin,
            None if tags is None else _tags(tags, found, origin),
        )


def _listed(given: Any) -> Any:
    return [] if given is None else given


def _tags(given: Any, text: str, origin: str) -> list[tuple[int, int, str]]:
    if not isinstance(given, list | tuple) or not all(map(_is_tag, given)):
        right = '[[0, 3, "DET"], [4, 7, "NOUN"]]'
        raise BesagError(f"{origin}: its tags must be a list such as {right}, not {quoted(given)}.")
    name = {(start, end): tag for start, end, tag in given}
    return [(*span, name[span]) for span in _spans([entry[:2] for entry in given], text, origin)]


def _spans(given: Any, text: str, origin: str) -> list[tuple[int, int]]:
    if not isinstance(given, list | tuple):
        raise BesagError(f"{origin}: its spans must be a list such as [[0, 4], [9, 12]], not {repr(given)[:60]}.")
    spans: list[tuple[int, int]] = []
    for entry in sorted(given, key=lambda pair: tuple(pair) if _is_span(pair) else (-1, -1)):
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


def _is_tag(entry: Any) -> bool:
    """A span and its name."""
    three = isinstance(entry, list | tuple) and len(entry) == 3
    return three and _is_span(entry[:2]) and isinstance(entry[2], str) and bool(entry[2])


def _first_line(failure: Exception) -> str:
    return (str(failure).strip() or type(failure).__name__).splitlines()[0]
