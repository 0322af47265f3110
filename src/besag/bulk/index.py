"""Where rows stand in the inputs, found in one pass: so that any shard can be read without those before it.

Rows are counted over all inputs, as `besag score` counts them, and a shard is a run of so many; it may begin in one
file and end in the next. What a row is depends on the format: a line of text; a line of JSON or TSV that is not blank;
a line of CSV, or several where a quoted cell runs on; a row of Parquet. A row that no reader can read is a row too.
Knows bytes and lines. Refuses to know what the rows say.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from besag.bulk.store import is_url, opened, size_of
from besag.errors import BesagError, quoted, require
from besag.files.packed import BROKEN, plain_name
from besag.files.rows import csv_cells, format_of

CHUNK = 1 << 20
SAMPLED = 1 << 20  # bytes of each end of a file that its fingerprint looks at
HEADED = ("tsv", "csv")
_BOM = b"\xef\xbb\xbf"


class Place(NamedTuple):
    """Before a row."""

    lines: int
    bytes: int


class Source(NamedTuple):
    """An input: what it is, and where its pieces begin."""

    path: str
    format: str
    bytes: int
    digest: str  # of both ends
    rows: int
    marks: list[Place]  # of the first row, and of each that begins a shard
    head: str  # the line that names the columns; "" where there is none
    width: int  # columns, where the format has them in lines

    @property
    def fingerprint(self) -> dict[str, Any]:
        name = self.path if is_url(self.path) else self.path.rpartition("/")[2]
        return {"file": name, "bytes": self.bytes, "ends": self.digest}

    @property
    def packed(self) -> bool:
        """Is it read from its beginning, wherever the rows stand?"""
        return plain_name(self.path) != self.path


class Piece(NamedTuple):
    """Rows of one input that stand together."""

    source: int
    first: int  # rows of this input before it
    rows: int
    begin: Place
    end: int  # the byte after it; −1: the end of the file


class Shard(NamedTuple):
    number: int
    first: int  # rows of all inputs before it
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)


# ---- looking at inputs


def look(path: str, format: str | None, header: bool, size: int, before: int) -> Source:
    """One input, gone through once; `before` rows are in others, and shards have `size` rows."""
    with undamaged(path):
        return _look(path, format or format_of(path), header, size, before)


@contextmanager
def undamaged(path: str) -> Iterator[None]:
    """Reject a packed file that ends too soon or cannot be unpacked, where it is read in here."""
    try:
        yield
    except BROKEN as failure:
        why = getattr(failure, "strerror", None) or failure
        raise BesagError(
            f"{quoted(path)} cannot be read, it is damaged: {why}. Put a whole copy in its place"
        ) from failure


def _look(path: str, format: str, header: bool, size: int, before: int) -> Source:
    bytes_, digest = identity(path)
    first = size - before % size  # the row of this input that begins a shard
    if format == "parquet":
        with opened(path) as file:
            rows = _parquet_rows(file, path)
        return Source(path, format, bytes_, digest, rows, [Place(0, 0)], "", 0)
    with opened(path) as file:
        head, width = _head(file, format, header)
    with opened(path) as file:
        rows, marks = _text(file, first, size) if format == "text" else _marked(file, format, head, width, first, size)
    if not rows:
        raise BesagError(f"{quoted(path)} has no rows: there is nothing to do")
    return Source(path, format, bytes_, digest, rows, marks, head.decode("utf-8", "surrogateescape"), width)


def identity(path: str) -> tuple[int, str]:
    """The size of a file and a hash of its two ends: cheap, and seen to change where a file was written anew."""
    size = size_of(path)
    digest = hashlib.sha256()
    with opened(path, packed=True) as file:
        digest.update(file.read(SAMPLED))
        if size > 2 * SAMPLED:
            file.seek(size - SAMPLED)
        digest.update(file.read(SAMPLED))
    return size, digest.hexdigest()[:32]


def shards(sources: list[Source], size: int) -> list[Shard]:
    """All rows of all inputs, in runs of `size`."""
    found: list[list[Piece]] = []
    before = 0
    for number, source in enumerate(sources):
        starts = [0, *range(size - before % size, source.rows, size)]
        ends = [*starts[1:], source.rows]
        marks = source.marks if source.format != "parquet" else source.marks * len(starts)
        stops = [*(mark.bytes for mark in marks[1:]), -1]
        for start, end, mark, stop in zip(starts, ends, marks, stops, strict=True):
            if (before + start) % size == 0:
                found.append([])
            found[-1].append(Piece(number, start, end - start, mark, stop))
        before += source.rows
    return [Shard(number, number * size, tuple(pieces)) for number, pieces in enumerate(found)]


# ---- where rows begin


def _parquet_rows(file: IO[bytes], path: str) -> int:
    pyarrow, parquet = require("pyarrow", extra="bulk"), require("pyarrow.parquet", extra="bulk")
    try:
        rows = int(parquet.ParquetFile(file).metadata.num_rows)
    except (pyarrow.ArrowException, OSError) as failure:
        why = (str(failure).strip() or type(failure).__name__).splitlines()[0]
        raise BesagError(f"{path} cannot be read, it is damaged or not a Parquet file: {why}") from failure
    if not rows:
        raise BesagError(f"{quoted(path)} has no rows: there is nothing to do")
    return rows


def _text(file: IO[bytes], first: int, size: int) -> tuple[int, list[Place]]:
    """Every line is a row: line ends are counted, a mebibyte at a time."""
    import numpy as np

    rows, at, marks, last = 0, 0, [Place(0, 0)], b"\n"
    while chunk := file.read(CHUNK):
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == 10)
        wanted = first + (len(marks) - 1) * size  # rows before the next mark
        while wanted <= rows + len(ends):
            marks.append(Place(wanted, at + int(ends[wanted - rows - 1]) + 1))
            wanted += size
        rows, at, last = rows + len(ends), at + len(chunk), chunk[-1:]
    rows += last != b"\n"
    return rows, marks[:-1] if marks[-1].lines == rows and rows else marks


def _head(file: IO[bytes], format: str, header: bool) -> tuple[bytes, int]:
    """The line that names the columns, and how many there are; of a file without one, as many as the first line has."""
    if format not in HEADED:
        return b"", 0
    taken, lines = b"", 0
    for number, (start, raw) in enumerate(row_lines(file, format)):
        blank = _is_blank(raw, format)
        if blank and header:
            continue
        taken, lines = raw, number + start
        break
    if not taken and not lines:
        return b"", 1
    text = taken.removeprefix(_BOM).decode("utf-8", "surrogateescape").rstrip("\r\n")
    width = text.count("\t") + 1 if format == "tsv" else _csv_width(text)
    return (taken if header else b""), width


def _csv_width(text: str) -> int:
    try:
        return next((len(cells[1]) for cells in csv_cells(iter([(1, text)]), "") if cells is not None), 1)
    except BesagError:
        return 1


def row_places(file: IO[bytes], format: str, head: bytes, width: int) -> Iterator[Place]:
    """Where each row of a line format begins; the line that names the columns is none."""
    at, lines, named = 0, 0, not head
    for count, raw in row_lines(file, format):
        blank = format != "text" and _is_blank(raw, format) and (format == "jsonl" or width != 1)
        if not named and not _is_blank(raw, format):
            named = True
        elif named and not blank:
            yield Place(lines, at)
        at, lines = at + len(raw), lines + count


def _marked(
    file: IO[bytes], format: str, head: bytes, width: int, first: int, size: int
) -> tuple[int, list[Place]]:  # fmt: skip
    marks: list[Place] = []
    rows = 0
    for place in row_places(file, format, head, width):
        if rows == 0 or (rows >= first and (rows - first) % size == 0):
            marks.append(place)
        rows += 1
    return rows, marks


def row_lines(file: IO[bytes], format: str) -> Iterator[tuple[int, bytes]]:
    """Lines, and how many they are: one, or in CSV as many as a quoted cell runs over."""
    if format != "csv":
        for raw in file:
            yield 1, raw
        return
    taken: list[bytes] = []

    def decoded() -> Iterator[tuple[int, str]]:
        for number, raw in enumerate(file, 1):
            taken.append(raw)
            yield (
                number,
                raw.removeprefix(_BOM if number == 1 else b"").rstrip(b"\n").decode("utf-8", "surrogateescape"),
            )

    found = decoded()
    while True:
        try:
            for _ in csv_cells(found, ""):
                yield len(taken), b"".join(taken)
                taken.clear()
        except BesagError:  # no CSV: a row that cannot be read
            yield len(taken), b"".join(taken)
            taken.clear()
            continue
        return


def _is_blank(raw: bytes, format: str) -> bool:
    """As the readers see it: nothing but white space, and in TSV no tab."""
    if raw[:1] > b" " and raw[:1] < b"\x7f":
        return False
    if format == "tsv" and b"\t" in raw:
        return False
    return not raw.removeprefix(_BOM).decode("utf-8", "surrogateescape").strip()


def rows_of(content: bytes, source: Source, after: int) -> list[tuple[int, bytes]]:
    """The rows of a piece one by one: how many lines stand before each, and its bytes."""
    starts = list(row_places(io.BytesIO(content), source.format, b"", source.width))
    ends = [*(place.bytes for place in starts[1:]), len(content)]
    return [(after + place.lines, content[place.bytes : end]) for place, end in zip(starts, ends, strict=True)]
