"""From the command line's INPUTs to numbered records, one at a time and in constant memory.

Knows files, stdin, compression, encodings and which argument is what; `tables.py` knows what stands in a line. Knows
nothing of models. A `None` among the records means that nothing has arrived for a moment: whoever waits may flush.
"""

from __future__ import annotations

import io
import os
import queue
import stat
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from besag.cli import tables
from besag.errors import BesagError
from besag.packed import BROKEN, OPENERS

CHUNK = 1 << 16  # bytes read at a time
CHUNKS_AHEAD = 4  # chunks that may wait for the scorer: what bounds the memory of an endless stdin
LONGEST_LINE = 1 << 24  # bytes; longer than any text, so it is a binary file or a wrong format
PATIENCE = 0.02  # seconds without a line before what waits is flushed


class Stream(Protocol):
    """Bytes from somewhere."""

    def read(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


_ENDINGS = (".txt", ".md", *tables.FORMAT_OF_ENDING, *OPENERS)


class Record(NamedTuple):
    number: int  # counted from 1 over all inputs, before --skip
    where: str  # "corpus.txt, line 3", for messages
    text: str
    others: Mapping[str, object]  # the other columns of its row


@dataclass(frozen=True)
class Input:
    """One argument: a text, a file or stdin. `rows` opens it anew each time (stdin but once)."""

    kind: str  # "text" | "file" | "stdin"
    value: str
    layout: tables.Layout

    @property
    def name(self) -> str:
        shortened = self.value if len(self.value) <= 60 else f"{self.value[:59]}…"
        return {"text": f"the text {shortened!r}", "file": self.value, "stdin": "stdin"}[self.kind]

    @property
    def regular(self) -> bool:
        """Can it be looked into without using it up?"""
        return self.kind == "file" and stat.S_ISREG(os.stat(self.value).st_mode)

    def is_file(self, path: str) -> bool:
        return self.kind == "file" and os.path.exists(path) and os.path.samefile(self.value, path)

    def rows(self) -> Iterator[tables.Row | None]:
        if self.kind == "text":
            yield tables.Row("text", 1, self.value, {})
            return
        ending = Path(self.value).suffix.lower()
        plain = self.value[: -len(ending)] if ending in OPENERS else self.value
        format = self.layout.format or tables.FORMAT_OF_ENDING.get(Path(plain).suffix.lower(), "text")
        if format == "parquet":
            if not self.regular:
                raise BesagError(f"{self.name}: Parquet is read from a file, not from a pipe")
            yield from tables.parquet_rows(self.value, self.layout)
        else:
            yield from tables.rows(_lines(self.name, self._chunks(ending)), format, self.layout, self.name)

    def _chunks(self, ending: str) -> Iterator[bytes | None]:
        if self.kind == "stdin":
            return _arriving(_stdin())
        try:
            stream = OPENERS.get(ending, _open)(self.value)
        except OSError as failure:
            raise BesagError(f"cannot read {self.value!r}: {failure.strerror}") from failure
        return _stored(stream) if self.regular else _arriving(stream)


def inputs(arguments: Sequence[str], *, as_text: bool, layout: tables.Layout) -> list[Input]:
    """Say what each argument is, and look into every regular file, so that a wrong one is known before any work."""
    found = [_classify(argument, as_text, layout) for argument in arguments]
    if sum(source.kind == "stdin" for source in found) > 1:
        raise BesagError("'-' (stdin) can be read only once")
    for source in found:
        if source.regular and all(False for _ in islice(source.rows(), 1)):
            raise BesagError(f"{source.name} is empty: there is nothing to score")
    return found


def records(sources: Sequence[Input], *, skip: int = 0, limit: int | None = None) -> Iterator[Record | None]:
    """All rows of all inputs, numbered; `skip` of them passed over, at most `limit` given."""
    number, last = 0, None if limit is None else skip + limit
    for source in sources:
        before = number
        for row in source.rows():
            if row is None:
                yield None
                continue
            number += 1
            where = source.name if source.kind == "text" else f"{source.name}, {row.unit} {row.place}"
            if not row.text.isascii() and any("\ud800" <= symbol <= "\udfff" for symbol in row.text):
                raise BesagError(f"{where}: the text holds half a surrogate pair, which no encoding can write")
            if number > skip:
                yield Record(number, where, row.text, row.others)
            if number == last:
                return
        if number == before:
            raise BesagError(f"nothing came in on {source.name}: there is nothing to score")
    if number <= skip:
        raise BesagError(f"--skip {skip} passes over all {number} rows: there is nothing left to score")


def _classify(argument: str, as_text: bool, layout: tables.Layout) -> Input:
    if as_text:
        return Input("text", argument, layout)
    if argument == "-":
        return Input("stdin", argument, layout)
    if os.path.isdir(argument):
        raise BesagError(f"{argument!r} is a folder; give the files in it (or --text to score the word itself)")
    if os.path.exists(argument):
        return Input("file", argument, layout)
    path_like = "/" in argument or os.sep in argument or argument.lower().endswith(_ENDINGS)
    if path_like and not any(symbol.isspace() for symbol in argument):
        raise BesagError(f"no such file: {argument!r} (if it is a text to be scored, say --text)")
    return Input("text", argument, layout)


def _open(path: str) -> Stream:
    return io.FileIO(path)


def _stdin() -> Stream:
    try:  # past Python's own buffer, whose lock a thread that is still reading would hold when the interpreter ends
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    except io.UnsupportedOperation:
        return sys.stdin.buffer  # stdin was replaced by something without a descriptor


def _stored(stream: Stream) -> Iterator[bytes]:
    with closing(stream):
        while chunk := stream.read(CHUNK):
            yield chunk


def _arriving(stream: Stream) -> Iterator[bytes | None]:
    """Chunks as somebody writes them, and None whenever nobody has for a moment."""
    waiting: queue.Queue[bytes | OSError] = queue.Queue(CHUNKS_AHEAD)

    def listen() -> None:
        chunk: bytes | OSError = b"-"
        while chunk:
            try:
                chunk = stream.read(CHUNK)
            except OSError as failure:
                waiting.put(failure)
                return
            waiting.put(chunk)

    threading.Thread(target=listen, name="besag-reader", daemon=True).start()
    while True:
        try:
            chunk = waiting.get(timeout=PATIENCE)
        except queue.Empty:
            yield None
            continue
        if isinstance(chunk, OSError):
            raise chunk
        if not chunk:
            return
        yield chunk


def _lines(name: str, chunks: Iterator[bytes | None]) -> Iterator[tuple[int, str] | None]:
    """Numbered lines of UTF-8 without their ends; a byte order mark at the start is passed over."""
    number, rest = 0, b""
    try:
        for chunk in chunks:
            if chunk is None:
                yield None
                continue
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                number += 1
                yield number, _decode(name, number, line)
            if len(rest) > LONGEST_LINE:
                raise BesagError(f"{name}, line {number + 1} is longer than {LONGEST_LINE >> 20} MiB: is this text?")
    except BROKEN as failure:
        raise BesagError(f"{name} cannot be read beyond line {number}: {failure}") from failure
    if rest:
        yield number + 1, _decode(name, number + 1, rest)


def _decode(name: str, number: int, line: bytes) -> str:
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    line = line.removesuffix(b"\r")
    nul = line.find(b"\0")
    if nul >= 0:
        raise BesagError(
            f"{name}, line {number}, byte {nul + 1} is NUL: this is a binary file, or text that is not UTF-8"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as failure:
        at = failure.start
        raise BesagError(
            f"{name}, line {number}, byte {at + 1} (0x{line[at]:02x}) is not UTF-8: this is a binary file, or text in "
            "another encoding, which iconv -t utf-8 converts"
        ) from failure
