"""Rows of results on their way out: aligned tables, TSV, CSV, JSON Lines, Parquet.

Knows formats and files, and not what the columns mean. The output is opened with the first row, so a run that fails
before it leaves nothing behind, and closed whole whatever happens after it. Lines are appended to a file while the rows
come; a Parquet file, which cannot be read before its end is written, is written under another name and renamed.
"""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from besag.errors import BesagError, require
from besag.files.appending import AppendedText
from besag.files.cells import cell, csv_line, escaped, tsv_line
from besag.files.claim import Claim
from besag.files.encoding import Columns, Delimited, Encoder, JsonLines, Others, Row
from besag.files.rows import FORMAT_OF_ENDING
from besag.files.whole import is_stream, whole
from besag.results.tables import shown

TABLE_ROWS, PARQUET_ROWS = 200, 4096  # rows that wait until their block is written


class Writer(Protocol):
    def write(self, row: Row, others: Others) -> None: ...
    def flush(self) -> None: ...  # let the reader have what is there
    def close(self) -> None: ...


class Growing(Writer, Protocol):
    """A writer whose file grows, so that another run can go on after a mark."""

    path: str | None

    def mark(self) -> dict[str, Any]: ...  # what is written is on disk; how to go on after it
    def go_on(self, mark: Mapping[str, Any]) -> None: ...  # cut off what came after the mark
    def finish(self) -> list[str]: ...  # all rows are written; the files that are of no more use


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
    if is_stream(path):
        return
    if os.path.exists(path) and not force:
        raise BesagError(f"{path!r} exists already: choose another {named_by}, or say --force to write over it")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise BesagError(f"no such folder: {folder!r}, to write {path!r} in")


def claimed(path: str, force: bool, named_by: str = "--output") -> Claim:
    """A file that may be written, and that no other process writes; a device or a pipe is nobody's."""
    check_output(path, True, named_by)
    claim = Claim(os.devnull if is_stream(path) else path, f"choose another {named_by}")
    try:
        check_output(path, force, named_by)  # now that nobody else can make it
    except BesagError:
        claim.release()
        raise
    return claim


def writer(format: str, path: str | None, force: bool, spreadsheet_safe: bool = False) -> Writer:
    """Check that the output may be written, and get ready to."""
    if path is None:
        return _writer(format, path, spreadsheet_safe)
    return Claimed(claimed(path, force), _writer(format, path, spreadsheet_safe))


def _writer(format: str, path: str | None, spreadsheet_safe: bool = False) -> Writer:
    return ParquetWriter(str(path)) if format == "parquet" else line_writer(format, path, spreadsheet_safe)


def write_rows(path: str | os.PathLike[str], rows: Sequence[Row]) -> None:
    """A whole file of rows that may differ in their columns, over an earlier one; its format is that of its ending."""
    names = dict.fromkeys(name for row in rows for name in row)
    with whole(path) as draft:
        out = _writer(choose_format(None, str(draft)), str(draft))
        try:
            for row in rows:
                out.write({name: row.get(name) for name in names}, {})
        finally:
            out.close()
        draft.touch()  # where there are no rows


class Claimed:
    """A writer whose file no other process writes until it is closed."""

    def __init__(self, claim: Claim, out: Writer) -> None:
        self._claim, self._out = claim, out
        self.write, self.flush = out.write, out.flush

    def close(self) -> None:
        try:
            self._out.close()
        finally:
            self._claim.release()


def line_writer(format: str, path: str | None, spreadsheet_safe: bool = False) -> Growing:
    if format == "table":
        return TableWriter(path)
    encoders: dict[str, Callable[[], Encoder]] = {
        "tsv": lambda: Delimited(tsv_line, spreadsheet_safe), "csv": lambda: Delimited(csv_line, spreadsheet_safe),
        "jsonl": JsonLines,
    }  # fmt: skip
    return LineWriter(encoders[format](), path)


# ---- one line a row


class LineWriter:
    """Lines, each flushed where somebody may be waiting for it."""

    def __init__(self, encode: Encoder, path: str | None) -> None:
        self.encode, self.path, self.out = encode, path, AppendedText(path)

    def write(self, row: Row, others: Others) -> None:
        self.out.append(self.encode(row, others))

    def flush(self) -> None:
        self.out.flush()

    def mark(self) -> dict[str, Any]:
        return {"bytes": self.out.size(), "columns": self.encode.columns.names}

    def go_on(self, mark: Mapping[str, Any]) -> None:
        self.out.keep(mark["bytes"])
        self.encode.columns.names = list(mark["columns"])

    def finish(self) -> list[str]:
        self.close()
        return []

    def close(self) -> None:
        self.out.close()


# ---- blocks of rows


class TableWriter:
    """Aligned columns for a reader, a block at a time; the other columns of the input are left to the other formats."""

    def __init__(self, path: str | None) -> None:
        self.path, self.out = path, AppendedText(path)
        self.rows: list[Row] = []

    def write(self, row: Row, others: Others) -> None:
        self.rows.append(row)
        if len(self.rows) >= TABLE_ROWS:
            self.flush()

    def flush(self) -> None:
        if self.rows:
            rows, self.rows = self.rows, []
            self.out.append(table(rows, None if self.path is not None or not sys.stdout.isatty() else sys.stdout))
        self.out.flush()

    def mark(self) -> dict[str, Any]:
        self.flush()
        return {"bytes": self.out.size()}

    def go_on(self, mark: Mapping[str, Any]) -> None:
        self.out.keep(mark["bytes"])

    def finish(self) -> list[str]:
        self.close()
        return []

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self.out.close()


def print_table(rows: list[Row], stream: IO[str]) -> None:
    """Rows of the same columns, numbers to the right, as wide as the terminal allows (or as need be)."""
    stream.write(table(rows, stream if stream.isatty() else None))


def table(rows: list[Row], terminal: IO[str] | None = None) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(
        file=terminal or io.StringIO(), width=None if terminal else 10_000, highlight=False, soft_wrap=False
    )
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float | None) for row in rows)
        found.add_column(Text(shown(name)), justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in rows:
        found.add_row(*(Text(_shown(row[name])) for name in rows[0]))
    with console.capture() as captured:
        console.print(found)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines() if line.strip())


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.2e}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
    return shown(escaped(cell(value)))


class ParquetWriter:
    """Row groups of Parquet; the first block gives the columns their types."""

    def __init__(self, path: str) -> None:
        require("pyarrow", extra="parquet")
        self.path, self.columns = path, Columns()
        self.file: Any = None
        self.rows: list[dict[str, object]] = []
        self.found: set[str] = set()  # the columns that are ours
        self.whole = ExitStack()  # leaving it puts the file in its place

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
        with self._or_nothing():
            if self.file is not None:
                self.file.close()
        self.whole.close()

    @contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """Where the disk is full, what is there cannot be read: it does not take the file's place."""
        try:
            yield
        except OSError:
            self.file, file = None, self.file
            with suppress(OSError):
                file.close()
            self.whole.__exit__(*sys.exc_info())
            raise

    def _write_block(self) -> None:
        pyarrow, parquet = require("pyarrow", extra="parquet"), require("pyarrow.parquet", extra="parquet")
        rows, self.rows = self.rows, []
        try:
            if self.file is None:
                inferred = pyarrow.Table.from_pylist(rows).schema
                schema = pyarrow.schema([self._known(pyarrow, column) for column in inferred])
                self.file = parquet.ParquetWriter(self.whole.enter_context(whole(self.path)), schema)
            table = pyarrow.Table.from_pylist(rows, schema=self.file.schema)
        except OverflowError as failure:
            raise BesagError("Parquet has no whole numbers of more than 64 bits: say --format jsonl") from failure
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as failure:
            raise BesagError(f"a column changes its type, which Parquet cannot hold: {failure}") from failure
        with self._or_nothing():
            self.file.write_table(table)

    def _known(self, pyarrow: Any, column: Any) -> Any:
        """A column that is empty so far: a number if it is ours, a text if it came in."""
        if not pyarrow.types.is_null(column.type):
            return column
        return pyarrow.field(column.name, pyarrow.float64() if column.name in self.found else pyarrow.string())
