"""What stands in a line: plain text, a cell of a TSV or CSV row, a field of a JSON object, a value of a Parquet column.

Knows formats and columns; where the lines come from and what becomes of the texts is not its affair. A `None` among
the lines (nothing has arrived for a moment) is passed on.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from besag.errors import BesagError, nearest, require

FORMAT_OF_ENDING = {
    ".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet",
}  # fmt: skip
USUAL_COLUMNS = ("text", "sentence")
LONGEST_ROW = 1 << 24  # characters of one CSV row; a quote that is never closed would swallow the file
PARQUET_ROWS = 1024

Line = tuple[int, str]
Cells = tuple[int, list[str]]


class Row(NamedTuple):
    unit: str  # "line" | "row" | "text"
    place: int  # which one, counted from 1
    text: str
    others: Mapping[str, object]


class Layout(NamedTuple):
    format: str | None = None  # None: by the file's ending
    column: str | None = None  # a name, or a number counted from 1; None: the one that is called text or sentence
    header: bool = True  # does the first row of a TSV or CSV name the columns?
    keep: bool = True  # are the other columns wanted?


def rows(lines: Iterator[Line | None], format: str, layout: Layout, name: str) -> Iterator[Row | None]:
    if format == "text":
        for line in lines:
            yield None if line is None else Row("line", line[0], line[1], {})
    elif format == "jsonl":
        yield from _json_rows(lines, layout, name)
    else:
        yield from _delimited_rows(_tsv_cells(lines) if format == "tsv" else _csv_cells(lines, name), layout, name)


def parquet_rows(path: str, layout: Layout) -> Iterator[Row]:
    pyarrow, parquet = require("pyarrow", extra="bulk"), require("pyarrow.parquet", extra="bulk")
    try:
        with parquet.ParquetFile(path) as file:
            column = _column(file.schema_arrow.names, layout.column, path)
            number = 0
            for batch in file.iter_batches(PARQUET_ROWS, columns=None if layout.keep else [column]):
                for row in batch.to_pylist():
                    number += 1
                    yield _row("row", number, row, column, layout, path)
            if not number:
                raise BesagError(f"{path} has columns but no rows: there is nothing to score")
    except (pyarrow.ArrowInvalid, OSError) as failure:
        raise BesagError(f"{path} is not a Parquet file that can be read: {failure}") from failure


def _row(unit: str, place: int, values: Mapping[str, object], column: str, layout: Layout, name: str) -> Row:
    if column not in values:
        listed = ", ".join(values)
        raise BesagError(f"{name}, {unit} {place} has no {column!r}; it has {listed}.{nearest(column, values)}")
    text = values[column]
    if text is not None and not isinstance(text, str):
        raise BesagError(f"{name}, {unit} {place}: {column!r} is {text!r}, not a text")
    others = {key: value for key, value in values.items() if key != column} if layout.keep else {}
    return Row(unit, place, text or "", others)


def _column(names: Sequence[str], wanted: str | None, name: str) -> str:
    """The column that holds the texts."""
    listed = f"{name} has the columns {', '.join(names)}"
    if wanted is None:
        usual = [column for column in USUAL_COLUMNS if column in names]
        if len(usual) == 1 or len(names) == 1:
            return (usual or names)[0]
        raise BesagError(f"which column holds the texts? Say --column NAME (or a number): {listed}")
    if wanted in names:
        return wanted
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise BesagError(f"no column {wanted!r}: {listed}.{nearest(wanted, names)}")


def _json_rows(lines: Iterator[Line | None], layout: Layout, name: str) -> Iterator[Row | None]:
    column = None
    for line in lines:
        if line is None:
            yield None
            continue
        number, text = line
        if not text.strip():
            continue  # JSON Lines allows empty lines; they are no rows
        try:
            value = json.loads(text)
        except ValueError as failure:
            array = " (an array? jq -c '.[]' makes one object a line of it)" if text.lstrip().startswith("[") else ""
            raise BesagError(f"{name}, line {number} is not JSON{array}: {failure}") from failure
        if isinstance(value, str):
            yield Row("line", number, value, {})
            continue
        if not isinstance(value, dict):
            raise BesagError(f"{name}, line {number} is JSON, but neither an object nor a string: {text[:40]}")
        if column is None:
            column = _column(list(value), layout.column, name)
        yield _row("line", number, value, column, layout, name)


def _delimited_rows(table: Iterator[Cells | None], layout: Layout, name: str) -> Iterator[Row | None]:
    names: list[str] = []
    column, any_row = "", False
    for cells in table:
        if cells is None:
            yield None
            continue
        number, values = cells
        if not names:
            names = _distinct(values) if layout.header else [str(place + 1) for place in range(len(values))]
            column = _column(names, layout.column, name)
            if layout.header:
                continue
        if values == [""] and len(names) > 1:
            continue  # an empty line in a table of several columns is no row
        if len(values) != len(names):
            raise BesagError(f"{name}, line {number} has {len(values)} cells, but the table has {len(names)} columns")
        any_row = True
        yield _row("line", number, dict(zip(names, values, strict=True)), column, layout, name)
    if names and not any_row:
        raise BesagError(f"{name} has a header but no rows: there is nothing to score (or say --no-header)")


def _distinct(names: Sequence[str]) -> list[str]:
    """Column names; the second of two equal ones gets a number."""
    earlier = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}.{count + 1}" if count else name for name, count in zip(names, earlier, strict=True)]


def _tsv_cells(lines: Iterator[Line | None]) -> Iterator[Cells | None]:
    """Cells between tabs; quotes are ordinary characters, as in the corpora that come as TSV."""
    for line in lines:
        yield None if line is None else (line[0], line[1].split("\t"))


def _csv_cells(lines: Iterator[Line | None], name: str) -> Iterator[Cells | None]:
    """Cells between commas, quoted where need be; a quoted cell may run over several lines."""
    csv.field_size_limit(LONGEST_ROW)
    begun, pending = 0, ""  # where an unfinished row began, and what is there of it
    for line in lines:
        if line is None:
            yield None
            continue
        number, text = line
        if begun:
            pending = f"{pending}\n{text}"
            if '"' not in text and len(pending) < LONGEST_ROW:
                continue  # this line cannot close the quote
        else:
            begun, pending = number, text
        try:
            cells = next(csv.reader([pending], strict=True)) or [""]
        except csv.Error as failure:
            if "end of data" in str(failure) and len(pending) < LONGEST_ROW:
                continue
            raise BesagError(f"{name}, line {begun} is not CSV: {failure}") from failure
        yield begun, cells
        begun = 0
    if begun:
        raise BesagError(f"{name}, line {begun} opens a quote that is never closed")
