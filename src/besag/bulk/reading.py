"""The rows of a shard, read by besag's own readers: a row that cannot be read is one bad row.

A piece is read at once. Where its reader refuses, it is read again row by row, and only the rows that are to blame are
left without a text, with what the reader said. Knows shards and readers; what becomes of the rows is not its affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from besag.bulk.index import Piece, Shard, Source, rows_of, undamaged
from besag.bulk.store import go_to, is_url, opened
from besag.errors import BesagError
from besag.files.columns import columns, usual
from besag.files.inputs import USUAL_COLUMNS, Input, Layout, Part, Record
from besag.files.lines import lines
from besag.files.rows import rows


class Reader(NamedTuple):
    """All that a task needs to read any shard."""

    sources: Sequence[Source]
    layouts: Sequence[Layout]  # of each source

    def read(self, wanted: Sequence[Shard]) -> Iterator[Read]:
        """Shards in their order, each file opened once and gone through forwards."""
        files: dict[int, IO[bytes]] = {}
        try:
            for shard in wanted:
                found = Read(shard.number, [])
                for piece in shard.pieces:
                    number = shard.first + len(found.records)
                    self._piece(found, piece, number, files)
                yield found
        finally:
            for file in files.values():
                file.close()

    def _piece(self, found: Read, piece: Piece, number: int, files: dict[int, IO[bytes]]) -> None:
        source, layout = self.sources[piece.source], self.layouts[piece.source]
        if source.format == "parquet":
            _add(found, number, source, layout, _parquet_parts(source, piece))
            return
        if piece.source not in files:
            files[piece.source] = opened(source.path)
        file = files[piece.source]
        with undamaged(source.path):
            go_to(file, piece.begin.bytes, file.tell())
            content = file.read() if piece.end < 0 else file.read(piece.end - piece.begin.bytes)
        head = source.head.encode("utf-8", "surrogateescape")
        whole = Part(content, piece.begin.lines, head)
        if not _add(found, number, source, layout, [whole], piece.rows):
            each = [Part(row, after, head) for after, row in rows_of(content, source, piece.begin.lines)]
            _add(found, number, source, layout, each)


@dataclass
class Read:
    """A shard on its way to the model."""

    number: int
    records: list[Record]
    problems: dict[int, str] = field(default_factory=dict)  # by the number of the row: why it could not be read


def _parquet_parts(source: Source, piece: Piece) -> list[Part]:
    file = opened(source.path) if is_url(source.path) else None
    return [Part(rows=range(piece.first, piece.first + piece.rows), file=file)]


def _add(
    found: Read, number: int, source: Source, layout: Layout, parts: Sequence[Part], expected: int | None = None
) -> bool:
    """Add the records of parts, numbered; with `expected` rows in one part, all of them or (False) none."""
    for part in parts:
        try:
            texts = [row for row in Input("part", source.path, layout, part).texts() if row is not None]
            if expected is not None and len(texts) != expected:
                return False
        except BesagError as problem:
            if expected is not None or source.format == "parquet":
                if source.format == "parquet":
                    raise
                return False
            number += 1
            where = f"{source.path}, line {part.after + 1}"
            found.records.append(Record(number, where, "", {}))
            found.problems[number] = str(problem) if where in str(problem) else f"{where}: {problem}"
            continue
        for text in texts:
            number += 1
            found.records.append(Record(number, *text))
    return True


def settled(layout: Layout, source: Source) -> Layout:
    """The layout with its column named as the first row of the file says; that of a piece may say otherwise."""
    layout = layout._replace(format=source.format)
    if source.format != "jsonl":
        return layout
    first = next(rows(lines(source.path, iter([_first(source)]), lenient=True), "jsonl", source.path))
    if first is None or isinstance(first.values, str):
        return layout
    wanted = layout.column or usual(list(first.values), USUAL_COLUMNS)
    if wanted is None:
        return layout
    return layout._replace(column=columns(list(first.values), [wanted], source.path)[0])


def first_record(source: Source, layout: Layout) -> Record:
    """The first row of an input: what is wrong with all of them is known before anything starts."""
    if source.format == "parquet":
        part = _parquet_parts(source, Piece(0, 0, 1, source.marks[0], -1))[0]
    else:
        part = Part(_first(source), source.marks[0].lines, source.head.encode("utf-8", "surrogateescape"))
    texts = Input("part", source.path, layout, part).texts()
    return Record(1, *next(row for row in texts if row is not None))


def _first(source: Source) -> bytes:
    """The bytes of the first row."""
    with opened(source.path) as file:
        go_to(file, source.marks[0].bytes, 0)
        content = file.read(1 << 16)
        while content.count(b"\n") < 1 and (more := file.read(1 << 20)):
            content += more
    return rows_of(content, source, 0)[0][1]
