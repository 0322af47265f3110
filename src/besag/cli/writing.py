"""Rows of results on their way out: aligned tables, TSV, CSV, JSON Lines, Parquet.

Knows formats and files; what the columns mean is decided in `rows.py`. The output is opened with the first row, so a
run that fails before it leaves nothing behind, and closed whole whatever happens after it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

from besag.cli.exits import say
from besag.cli.tables import FORMAT_OF_ENDING
from besag.errors import BesagError, require
from besag.results.data import json_ready

TABLE_ROWS, PARQUET_ROWS = 200, 4096  # rows that wait until their block is written
ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

Row: TypeAlias = Mapping[str, object]  # what besag found
Others: TypeAlias = Mapping[str, object]  # the other columns of the input's row


class Writer(Protocol):
    def write(self, row: Row, others: Others) -> None: ...
    def flush(self) -> None: ...  # let the reader have what is there
    def close(self) -> None: ...


def choose_format(format: str | None, path: str | None) -> str:
    """As asked; else by the file's ending; else a table for a reader and TSV for a program."""
    if format is None and path is not None:
        format = FORMAT_OF_ENDING.get(Path(path).suffix.lower(), "tsv")
    if format is None:
        format = "table" if sys.stdout.isatty() else "tsv"
    if format == "parquet" and path is None:
        raise BesagError("Parquet goes to a file: say --output FILE.parquet")
    return format


def check_output(path: str, force: bool, named_by: str = "--output") -> None:
    """May this file be written?"""
    if os.path.isdir(path):
        raise BesagError(f"{path!r} is a folder: {named_by} is a file")
    if os.path.exists(path) and not force:
        raise BesagError(f"{path!r} exists already: choose another {named_by}, or say --force to write over it")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise BesagError(f"no such folder: {folder!r}, to write {path!r} in")


def writer(format: str, path: str | None, force: bool) -> Writer:
    """Check that the output may be written, and get ready to."""
    if path is not None:
        check_output(path, force)
    if format == "parquet":
        require("pyarrow", extra="bulk")
        return ParquetWriter(str(path))
    if format == "table":
        return TableWriter(path)
    encoders: dict[str, Callable[[], Encode]] = {
        "tsv": lambda: Delimited(tsv_line), "csv": lambda: Delimited(csv_line), "jsonl": lambda: json_line,
    }  # fmt: skip
    return LineWriter(encoders[format](), path)


def _open(path: str | None) -> IO[str]:
    if path is None:
        return sys.stdout
    try:
        return open(path, "w", encoding="utf-8", newline="")
    except OSError as failure:
        raise BesagError(f"cannot write {path!r}: {failure.strerror}") from failure


# ---- one line a row

Encode: TypeAlias = Callable[[Row, Others], str]


class LineWriter:
    """Lines, each flushed where somebody may be waiting for it."""

    def __init__(self, encode: Encode, path: str | None) -> None:
        self.encode, self.path = encode, path
        self.stream: IO[str] | None = None

    def write(self, row: Row, others: Others) -> None:
        text = self.encode(row, others)
        self.stream = self.stream or _open(self.path)
        self.stream.write(text)
        if self.path is None:
            self.stream.flush()

    def flush(self) -> None:
        if self.stream is not None:
            self.stream.flush()

    def close(self) -> None:
        if self.stream is not None and self.path is not None:
            self.stream.close()


class Columns:
    """The columns of a table whose rows may differ: those of the first row."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.left_out: set[str] = set()

    def arrange(self, row: Row, others: Others) -> dict[str, object]:
        """One row with exactly these columns; an input's column named like one of ours is called input.NAME."""
        flat = {**row, **{f"input.{name}" if name in row else name: value for name, value in others.items()}}
        if not self.names:
            self.names = list(flat)
        for name in flat.keys() - set(self.names) - self.left_out:
            self.left_out.add(name)
            say(f"warning: the column {name!r} is left out, for the first row has none; --format jsonl would keep it")
        return {name: flat.get(name) for name in self.names}


class Delimited:
    """A header, then a line a row. What besag computed is rounded to 8 digits; what came in goes out as it was."""

    def __init__(self, line: Callable[[list[str]], str]) -> None:
        self.line, self.columns = line, Columns()

    def __call__(self, row: Row, others: Others) -> str:
        first = not self.columns.names
        flat = self.columns.arrange({name: _rounded(value) for name, value in row.items()}, others)
        header = self.line(self.columns.names) if first else ""
        return header + self.line([_cell(value) for value in flat.values()])


def tsv_line(cells: list[str]) -> str:
    """Tabs, line ends and backslashes inside a cell are escaped, so a line is a row and a tab is a border."""
    return "\t".join(cell.translate(ESCAPES) for cell in cells) + "\n"


def csv_line(cells: list[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)  # only characters of the line end are quoted, and a lone CR must be, too
    return buffer.getvalue().removesuffix("\r\n") + "\n"


def json_line(row: Row, others: Others) -> str:
    whole = {**row, "input": others} if others else row
    return json.dumps(json_ready(whole), ensure_ascii=False, allow_nan=False, default=str) + "\n"


def _rounded(value: object) -> object:
    return f"{value:.8g}" if isinstance(value, float) and not math.isnan(value) else value


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list | bool) else str(value)


# ---- blocks of rows


class TableWriter:
    """Aligned columns for a reader, a block at a time; the other columns of the input are left to the other formats."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.stream: IO[str] | None = None
        self.rows: list[Row] = []

    def write(self, row: Row, others: Others) -> None:
        self.rows.append(row)
        if len(self.rows) >= TABLE_ROWS:
            self.flush()

    def flush(self) -> None:
        if self.rows:
            rows, self.rows = self.rows, []
            self.stream = self.stream or _open(self.path)
            print_table(rows, self.stream)
            self.stream.flush()

    def close(self) -> None:
        self.flush()
        if self.stream is not None and self.path is not None:
            self.stream.close()


def print_table(rows: list[Row], stream: IO[str]) -> None:
    """Rows of the same columns, numbers to the right, as wide as the terminal allows (or as need be)."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, width=None if stream.isatty() else 10_000, highlight=False, soft_wrap=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float | None) for row in rows)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in rows:
        table.add_row(*(Text(_shown(row[name])) for name in rows[0]))
    with console.capture() as captured:
        console.print(table)
    stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines() if line.strip()))


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.2e}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
    return _cell(value).translate(ESCAPES)


class ParquetWriter:
    """Row groups of Parquet; the first block gives the columns their types."""

    def __init__(self, path: str) -> None:
        self.path, self.columns = path, Columns()
        self.file: Any = None
        self.rows: list[dict[str, object]] = []
        self.found: set[str] = set()  # the columns that are ours

    def write(self, row: Row, others: Others) -> None:
        self.found = self.found or set(row)
        self.rows.append(self.columns.arrange(row, others))
        if len(self.rows) >= PARQUET_ROWS:
            self._write_block()

    def flush(self) -> None:
        """A Parquet file cannot be read before it is closed: nothing to do."""

    def close(self) -> None:
        if self.rows:
            self._write_block()
        if self.file is not None:
            self.file.close()

    def _write_block(self) -> None:
        pyarrow, parquet = require("pyarrow", extra="bulk"), require("pyarrow.parquet", extra="bulk")
        rows, self.rows = self.rows, []
        try:
            if self.file is None:
                inferred = pyarrow.Table.from_pylist(rows).schema
                schema = pyarrow.schema([self._known(pyarrow, column) for column in inferred])
                self.file = parquet.ParquetWriter(self.path, schema)
            self.file.write_table(pyarrow.Table.from_pylist(rows, schema=self.file.schema))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as failure:
            raise BesagError(f"a column changes its type, which Parquet cannot hold: {failure}") from failure

    def _known(self, pyarrow: Any, column: Any) -> Any:
        """A column that is empty so far: a number if it is ours, a text if it came in."""
        if not pyarrow.types.is_null(column.type):
            return column
        return pyarrow.field(column.name, pyarrow.float64() if column.name in self.found else pyarrow.string())
