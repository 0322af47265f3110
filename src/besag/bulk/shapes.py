"""The rows of a shard as a file of its own, and shards put together again in the order of the input.

Every shard is a file that can be read as it is, with the columns of the first row of all. Put together, shards of TSV,
CSV and JSON Lines are the bytes that `besag score` writes; rows of Parquet are written anew, in its row groups.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeAlias

from besag.bulk.index import row_lines
from besag.errors import BesagError, quoted, require
from besag.files.cells import csv_line, tsv_line
from besag.files.encoding import Columns, Delimited, JsonLines, Others, Row
from besag.files.lines import lines
from besag.files.rows import NoRows, parquet_rows, rows
from besag.files.whole import whole
from besag.files.writing import ParquetWriter

Format: TypeAlias = Literal["tsv", "csv", "jsonl", "parquet"]
Pair: TypeAlias = tuple[Row, Others]


class Shape(NamedTuple):
    """How rows are written."""

    format: Format
    others: tuple[str, ...] = ()  # the other columns of the first row of all

    def encode(self, pairs: Sequence[Pair], own: Sequence[str]) -> bytes:
        """A file of these rows; `own` are the columns of a verb, there even where no row was kept."""
        first = dict.fromkeys(own), dict.fromkeys(self.others)
        if self.format == "jsonl":
            encode = JsonLines()
            return "".join(encode(*pair) for pair in pairs).encode("utf-8")
        if self.format == "parquet":
            return self._parquet(pairs, first)
        table = Delimited(tsv_line if self.format == "tsv" else csv_line)
        table.columns.arrange(*first)
        return "".join([table.header(), *(table(*pair) for pair in pairs)]).encode("utf-8")

    def _parquet(self, pairs: Sequence[Pair], first: Pair) -> bytes:
        pyarrow, parquet = require("pyarrow", extra="bulk"), require("pyarrow.parquet", extra="bulk")
        if not pairs:
            columns = Columns()
            columns.arrange(*first)
            buffer = io.BytesIO()
            parquet.write_table(pyarrow.table({name: pyarrow.nulls(0) for name in columns.names}), buffer)
            return buffer.getvalue()
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "shard.parquet")
            out = ParquetWriter(path)
            out.columns.arrange(*first)
            _write(out, pairs)
            with open(path, "rb") as file:
                return file.read()

    def statuses(self, content: bytes) -> dict[str, str]:
        """What a shard says of each row of the input: its number, and the status of its (first) answer."""
        if self.format == "parquet":
            if not require("pyarrow.parquet", extra="bulk").read_metadata(io.BytesIO(content)).num_rows:
                return {}
            found: Iterable[Any] = parquet_rows("a shard", ["row", "status"], file=io.BytesIO(content))
        else:
            found = rows(lines("a shard", iter([content]), keep_returns=self.format == "csv"), self.format, "a shard")
        first: dict[str, str] = {}
        with suppress(NoRows):
            for row in found:
                first.setdefault(str(row.values["row"]), str(row.values["status"]))
        return first

    def merge(self, shards: Iterable[bytes], path: str) -> None:
        """All shards, in order, as one file: there whole, or not at all."""
        if self.format == "parquet":
            _write(ParquetWriter(path), self._again(shards))
            return
        header = b""
        with whole(path) as draft, open(draft, "wb") as file:
            for number, content in enumerate(shards):
                if self.format != "jsonl" and not number:
                    header = next((raw for _, raw in row_lines(io.BytesIO(content), self.format)), b"")
                if not content.startswith(header):
                    raise BesagError(f"shard {number:06} has other columns than the first: {quoted(content[:200])}")
                file.write(content[len(header) if number else 0 :])

    def _again(self, shards: Iterable[bytes]) -> Iterator[Pair]:
        """The rows of Parquet shards, the columns of the input apart from a verb's own."""
        for content in shards:
            with tempfile.TemporaryDirectory() as place:
                path = os.path.join(place, "shard.parquet")
                with open(path, "wb") as file:
                    file.write(content)
                if not require("pyarrow.parquet", extra="bulk").read_metadata(path).num_rows:
                    continue
                for row in parquet_rows(path):
                    assert not isinstance(row.values, str)
                    names = row.values
                    others = {name: value for name, value in names.items() if self._is_other(name, names)}
                    yield {name: value for name, value in names.items() if name not in others}, others

    def _is_other(self, name: str, names: Iterable[str]) -> bool:
        plain = name.removeprefix("input.")
        return (name in self.others and f"input.{name}" not in names) or (plain != name and plain in self.others)


def _write(out: ParquetWriter, pairs: Iterable[Pair]) -> None:
    try:
        for row, others in pairs:
            out.write(row, others)
    finally:
        out.close()
