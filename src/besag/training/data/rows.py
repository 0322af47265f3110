"""Documents out of rows with named fields: those of a file (`besag.files`), and names of `datasets`.

A row's text stands in one field, and the spans that were given for it (entities, errors; parts of speech, with their
tags) may stand in others; each may be nested, as in `meta.spans`. Other fields are a header to it, or say which
documents it belongs with. What is wrong with a row is told with its file and
line. Knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from besag.errors import BesagError, quoted, require
from besag.files.columns import has, text, value
from besag.files.rows import Row
from besag.training.recipe import Data
from besag.training.recipe.contexts import header_fields, header_parts


class Beside(NamedTuple):
    """Of one document: the header before it, and what it belongs with."""

    header: str = ""  # one line
    fields: tuple[tuple[int, int, str], ...] = ()  # where in the header the fields stand, in order
    name: str | None = None
    links: tuple[str, ...] = ()  # names of others
    group: str | None = None


class Document(NamedTuple):
    text: str  # paragraphs are lines
    spans: list[tuple[int, int]] | None  # given spans (entities, errors), in characters, in order; None: none given
    origin: str  # for messages: "corpus/a.txt, line 17"
    tags: list[tuple[int, int, str]] | None = None  # given tags, from where to where each, in order; None: none given
    beside: Beside | None = None  # what else the row says; None: nothing was asked for


def from_rows(rows: Iterable[Row], data: Data) -> Iterator[Document]:
    """The documents of a file with columns; a row that is a text alone is its document."""
    for row in rows:
        yield from document({data.field: row.values} if isinstance(row.values, str) else row.values, row.where, data)


def from_dataset(name: str, data: Data) -> Iterator[Document]:
    datasets: Any = require("datasets", "train")
    with _loading(name, data):
        rows = datasets.load_dataset(name, split=data.split, streaming=data.stream)
    for number, row in enumerate(rows, start=1):
        yield from document(row, f"{name}[{data.split}], row {number}", data)


def version(name: str, data: Data) -> str:
    """Return what `datasets` knows the content of a dataset by: its commit, or the sizes and times of its files."""
    datasets: Any = require("datasets", "train")
    with _loading(name, data):
        return str(datasets.load_dataset_builder(name).hash)


@contextmanager
def _loading(name: str, data: Data) -> Iterator[None]:
    try:
        yield
    except Exception as failure:  # whatever a dataset's own code, its files or the network may raise
        asked = f"data.dataset = {name!r} with data.split = {data.split!r}"
        raise BesagError(f"{asked} cannot be loaded: {_first_line(failure)}") from failure


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
            _beside(row, origin, data) if wanted(data) else None,
        )


def wanted(data: Data) -> list[str]:
    """The fields that are read besides a text: those of its header, its group, its links and its name."""
    return [
        *header_fields(data.header or ""),
        *filter(None, [data.group, data.links, data.name if data.links is not None else None]),
    ]


def _beside(row: Mapping[str, Any], origin: str, data: Data) -> Beside:
    line, fields = "", []
    for name, literal in header_parts(data.header or ""):
        said = literal if name is None else _one_line(row, name, origin)
        if name is not None and said:
            fields.append((len(line), len(line) + len(said), name))
        line += said
    if data.header is not None and not fields:
        raise BesagError(
            f"{origin}: data.header = {quoted(data.header)} finds nothing to write, its fields are empty: fill one of "
            "them, or leave the row out"
        )
    return Beside(
        line,
        tuple(fields),
        None if data.links is None else _one_line(row, data.name, origin) or None,
        () if data.links is None else _names(value(row, data.links, origin), data.links, origin),
        None if data.group is None else _one_line(row, data.group, origin) or None,
    )


def _one_line(row: Mapping[str, Any], name: str, origin: str) -> str:
    """A field as text without line breaks; empty where there is nothing."""
    found = value(row, name, origin)
    if found is not None and not (isinstance(found, str | int | float) and not isinstance(found, bool)):
        raise BesagError(f"{origin}: {name!r} is {quoted(found)}, not a text or a number")
    return " ".join(("" if found is None else str(found)).split())


def _names(given: Any, field: str, origin: str) -> tuple[str, ...]:
    listed = given.split() if isinstance(given, str) else _listed(given)
    if not isinstance(listed, list | tuple) or not all(type(name) in (str, int) for name in listed):
        right = '["a7", "b2"]'
        raise BesagError(f"{origin}: {field!r} must be a list of names such as {right}, not {quoted(given)}")
    return tuple(str(name) for name in listed)


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
