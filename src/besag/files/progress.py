"""Going on where a run stopped: an output that grows by blocks, and a note beside it of how far it is.

    FILE            rows, appended as they come (Parquet: when all are there)
    FILE.progress   the settings, how many blocks are done, and where in the file they end; gone when all is done
    FILE.rows       the rows of a Parquet file to be, as Arrow streams; gone when all is done

Input is cut by row number into blocks of `BLOCK` rows, whatever the batches are, and a block is worked on alone. The
note is written whole after each block, once its rows are on disk; so a run that was killed at any moment goes on after
the last noted block, and what came after it is cut off and written again. Knows nothing of what the rows are.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from besag.errors import BesagError, require
from besag.files.appending import Appended
from besag.files.encoding import Columns, Others, Row
from besag.files.inputs import Record
from besag.files.whole import write_whole
from besag.files.writing import Growing, ParquetWriter, Writer, check_output, claimed, line_writer

# Rows of input in a block. Between two blocks a fast device idles for a tenth of a second; a slow one makes whoever
# stops it wait for a block to be done again.
BLOCK = {"cpu": 512, "mps": 2048, "cuda": 16_384}
SPOOLED = 4096  # rows of output that are put on disk together
KIND = "besag progress"


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is not the same in the settings of two runs: "seed is 1, and was 0"."""
    return [
        f"{name} is {_said(now.get(name))}, and was {_said(before.get(name))}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]


def _said(value: object) -> str:
    return "not set" if value is None else repr(value)


def in_blocks(records: Iterable[Record | None], size: int) -> Iterator[Record | None]:
    """The records, and None after every block: whoever reads them then finishes what it has begun."""
    count = 0
    for record in records:
        yield record
        if record is not None:
            count += 1
            if count % size == 0:
                yield None


class Resumable:
    """A file of rows that is written block by block. `state` of a block is the caller's own, handed back by `begin`."""

    def __init__(
        self, format: str, path: str, *, force: bool = False, resume: bool = False, go_on: str = "",
        spreadsheet_safe: bool = False,
    ) -> None:  # fmt: skip
        """`go_on` is the command that resumes, for messages."""
        self.path, self.note_path = path, f"{path}.progress"
        self._claim = claimed(path, force=True)
        try:
            self._look(resume, force, go_on)
        except BesagError:
            self._claim.release()
            raise
        self.out: Growing = Spool(path) if format == "parquet" else line_writer(format, path, spreadsheet_safe)
        self.settings: dict[str, Any] = {}
        self.blocks = 0
        self.begun = False

    def _look(self, resume: bool, force: bool, go_on: str) -> None:
        """What is there already, and may it be written?"""
        path = self.path
        self.resume = resume and os.path.exists(self.note_path)
        if os.path.exists(self.note_path) and not resume and not force:
            raise BesagError(f"{path!r} is not finished: go on with {go_on}, or say --force to begin anew")
        if resume and not (self.resume or force) and os.path.exists(path):
            raise BesagError(
                f"{path!r} is finished, or was not written by a run that can go on: there is no {self.note_path!r}"
            )
        check_output(path, force or self.resume)

    def begin(self, settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Go on with a run of the same settings: what it noted last; None where all begins."""
        try:
            return self._begin(settings)
        except BesagError:
            self._claim.release()
            raise

    def _begin(self, settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self.settings = json.loads(json.dumps(settings))  # as it will be read back
        if not self.resume:
            return None
        note = self._note()
        differ = differences(note["settings"], self.settings)
        if differ:
            raise BesagError(
                f"{self.path!r} was begun with other settings: {'; '.join(differ)}. Go on with the same ones, or say "
                "--force to begin anew"
            )
        self.blocks = note["blocks"]
        if not self.blocks:
            return None
        self.out.go_on(note["mark"])
        self.begun = True
        state: Mapping[str, Any] = note["state"]
        return state

    def write(self, row: Row, others: Others) -> None:
        if not self.begun:  # before there is a row, so that a file without a note is a finished one
            self.begun = True
            self._write_note({}, {})
        self.out.write(row, others)

    def flush(self) -> None:
        self.out.flush()

    def end_block(self, state: Mapping[str, Any]) -> None:
        """All rows of a block are written: from now on they stay."""
        mark = self.out.mark()
        self.blocks += 1
        self._write_note(mark, state)

    def finish(self) -> None:
        """All rows are written: nothing is left to go on with."""
        self.out.mark()  # on disk, also what follows the last block: without its note a file counts as finished
        useless = self.out.finish()
        for path in (self.note_path, *useless):  # the note first: it needs the others
            with suppress(FileNotFoundError):
                os.unlink(path)

    def close(self) -> None:
        """Whatever happened: what was written is whole."""
        try:
            self.out.close()
        finally:
            self._claim.release()

    def _write_note(self, mark: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        note = {"kind": KIND, "settings": self.settings, "blocks": self.blocks, "mark": mark, "state": state}
        write_whole(self.note_path, json.dumps(note, indent=1) + "\n")

    def _note(self) -> dict[str, Any]:
        try:
            with open(self.note_path, encoding="utf-8") as file:
                note = json.load(file)
            if note["kind"] != KIND or not {"settings", "blocks", "mark", "state"} <= note.keys():
                raise ValueError("it is no note of a run")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
            raise BesagError(
                f"{self.note_path!r}, which says how far {self.path!r} is, cannot be read ({failure}): say --force to "
                "begin anew"
            ) from failure
        return dict(note)


class Streamed:
    """An output that no run can go on with: stdout, or rows of a pipe. It is used like one that can."""

    def __init__(self, out: Writer) -> None:
        self.out = out
        self.write, self.flush, self.finish, self.close = out.write, out.flush, out.close, out.close

    def begin(self, settings: Mapping[str, Any]) -> None:
        return None

    def end_block(self, state: Mapping[str, Any]) -> None:
        """Nothing is noted."""


class Spool:
    """The rows of a Parquet file to be, in a file that grows; the Parquet file is written whole when all are there."""

    def __init__(self, path: str) -> None:
        require("pyarrow", extra="parquet")
        self.path: str | None = path
        self.final, self.rows_path = path, f"{path}.rows"
        self.columns = Columns()
        self.found: list[str] = []  # the columns that are ours
        self.file = Appended(self.rows_path)
        self.closed = False
        self.waiting: list[dict[str, object]] = []

    def write(self, row: Row, others: Others) -> None:
        self.found = self.found or list(row)
        self.waiting.append(self.columns.arrange(row, others))
        if len(self.waiting) >= SPOOLED:
            self._append()

    def flush(self) -> None:
        """Nobody can read a Parquet file before its end: nothing to do."""

    def mark(self) -> dict[str, Any]:
        self._append()
        return {"bytes": self.file.size(), "columns": self.columns.names, "found": self.found}

    def go_on(self, mark: Mapping[str, Any]) -> None:
        self.file.keep(mark["bytes"])
        self.columns.names, self.found = list(mark["columns"]), list(mark["found"])

    def finish(self) -> list[str]:
        self.close()
        return [self.rows_path]

    def close(self) -> None:
        """A Parquet file of all rows that are there."""
        if self.closed:
            return
        self.closed = True
        try:
            self._append()
        finally:
            self.file.close()
        if not self.file.kept:
            return
        out = ParquetWriter(self.final)
        try:
            for row in self._spooled(self.file.kept):
                ours = {name: row[name] for name in self.found}
                out.write(ours, {name: value for name, value in row.items() if name not in ours})
        finally:
            out.close()

    def _append(self) -> None:
        """What waits, as an Arrow stream after its length."""
        if not self.waiting:
            return
        pyarrow = require("pyarrow", extra="parquet")
        waiting, self.waiting = self.waiting, []
        try:
            table = pyarrow.Table.from_pylist(waiting)
        except OverflowError as failure:
            raise BesagError("Parquet has no whole numbers of more than 64 bits: say --format jsonl") from failure
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as failure:
            raise BesagError(f"a column changes its type, which Parquet cannot hold: {failure}") from failure
        buffer = io.BytesIO()
        with pyarrow.ipc.new_stream(buffer, table.schema) as stream:
            stream.write_table(table)
        self.file.append(len(buffer.getvalue()).to_bytes(8, "little") + buffer.getvalue())

    def _spooled(self, size: int) -> Iterator[dict[str, Any]]:
        pyarrow = require("pyarrow", extra="parquet")
        with open(self.rows_path, "rb") as file:
            while file.tell() < size:
                content = file.read(int.from_bytes(file.read(8), "little"))
                yield from pyarrow.ipc.open_stream(content).read_all().to_pylist()
