"""Bytes into numbered lines of UTF-8, in bounded memory: the only place where text is decoded.

Knows files, pipes and encodings; what stands in a line is the affair of `rows.py`. A `None` among the lines of a pipe
means that nothing has arrived for a moment: whoever waits may flush. A line that is not UTF-8 is refused, with its
place; whoever can give its row a status has it `lenient`, with the strange bytes as `characters.py` says.
"""

from __future__ import annotations

import io
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from besag.errors import BesagError, nearest, quoted
from besag.files.packed import BROKEN, OPENERS, unpacked

CHUNK = 1 << 16  # bytes read at a time
CHUNKS_AHEAD = 4  # chunks of a pipe that may wait: what bounds the memory of an endless one
LONGEST_LINE = 1 << 24  # bytes; longer than any text, so it is a binary file or a wrong format
PATIENCE = 0.02  # seconds without a line before what waits is flushed

Line: TypeAlias = tuple[int, str]  # counted from 1; without its end


class Stream(Protocol):
    """Bytes from somewhere."""

    def read(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


def lines_of(path: str) -> Iterator[Line]:
    """The lines of a file, unpacked if need be."""
    return cast(Iterator[Line], lines(path, stored(partial(opened, path))))


def small_file(path: str) -> bytes:
    """All of a file that is read at once, such as a TOML or JSON document: no larger than a line may be."""
    stream = opened(path)
    with closing(stream):
        found = bytearray()
        while chunk := _read(stream, path, f"beyond byte {len(found):,}"):
            found += chunk
            if len(found) > LONGEST_LINE:
                raise BesagError(f"{path!r} is larger than {LONGEST_LINE >> 20} MiB: that is no settings file")
        return bytes(found)


def opened(path: str) -> Stream:
    """The bytes of a file; what is not there is answered with its nearest neighbour."""
    if "\0" in path:
        raise BesagError(f"no file can be called {quoted(path)}: there is a NUL in the name")
    try:
        return unpacked(path)
    except FileNotFoundError:
        folder = Path(path).parent
        others = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        raise BesagError(f"no such file: {quoted(path)}.{nearest(Path(path).name, others)}") from None
    except IsADirectoryError:
        raise BesagError(f"{path!r} is a folder: name the files in it") from None
    except BROKEN as failure:
        raise BesagError(f"cannot read {quoted(path)}: {getattr(failure, 'strerror', None) or failure}") from failure


def standard_input() -> Stream:
    try:  # past Python's own buffer, whose lock a thread that is still reading would hold when the interpreter ends
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    except (io.UnsupportedOperation, AttributeError):
        return sys.stdin.buffer  # stdin was replaced by something without a descriptor


def stored(open_: Callable[[], Stream]) -> Iterator[bytes]:
    """Chunks of what is there; where there is nothing yet, it waits. It is opened with the first chunk."""
    with closing(open_()) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def arriving(open_: Callable[[], Stream]) -> Iterator[bytes | None]:
    """Chunks as somebody writes them, and None whenever nobody has for a moment. It is opened with the first chunk."""
    stream = open_()
    waiting: queue.Queue[bytes | Exception] = queue.Queue(CHUNKS_AHEAD)

    def listen() -> None:
        with closing(stream):
            chunk: bytes | Exception = b"-"
            while chunk:
                try:
                    chunk = stream.read(CHUNK)
                except BROKEN as failure:
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
        if isinstance(chunk, Exception):
            raise chunk
        if not chunk:
            return
        yield chunk


def lines(
    name: str,
    chunks: Iterator[bytes | None],
    keep_returns: bool = False,
    lenient: bool = False,
    after: int = 0,
) -> Generator[Line | None, None, None]:
    """Numbered lines without their ends; a byte order mark at the start is passed over.

    `keep_returns`: a carriage return before the line end stays, for formats in which a line end may stand in a cell.
    `lenient`: bytes that are not UTF-8 are kept, as halves of surrogate pairs. `after` lines stand before these.
    """
    number, size = after, 0
    begun: list[bytes] = []  # the pieces of a line whose end has not come yet, `size` bytes in all
    try:
        for chunk in chunks:
            if chunk is None:
                yield None
                continue
            first, *others = chunk.split(b"\n")
            begun.append(first)
            size += len(first)
            if size > LONGEST_LINE:
                raise BesagError(f"{name}, line {number + 1} is longer than {LONGEST_LINE >> 20} MiB: is this text?")
            if others:
                for line in (b"".join(begun), *others[:-1]):
                    number += 1
                    yield number, _decode(name, number, line, keep_returns, lenient)
                begun, size = [others[-1]], len(others[-1])
    except BROKEN as failure:
        raise _cut_off(name, f"beyond line {number}", failure) from failure
    finally:
        if isinstance(chunks, Generator):
            chunks.close()  # and with it the file, also where a line was rejected
    if size:
        yield number + 1, _decode(name, number + 1, b"".join(begun), keep_returns, lenient)


def _read(stream: Stream, name: str, where: str) -> bytes:
    try:
        return stream.read(CHUNK)
    except BROKEN as failure:
        raise _cut_off(name, where, failure) from failure


def _cut_off(name: str, where: str, failure: Exception) -> BesagError:
    ending = Path(name).suffix.lower()
    damage = f" (it is damaged, or no {ending} file)" if ending in OPENERS else ""
    return BesagError(f"{name} cannot be read {where}: {failure}{damage}")


def _decode(name: str, number: int, line: bytes, keep_returns: bool, lenient: bool) -> str:
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
        if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise BesagError(f"{name} begins like UTF-16 or UTF-32, and text must be UTF-8: iconv -t utf-8 converts it")
    if not keep_returns:
        line = line.removesuffix(b"\r")
    nul = line.find(b"\0")
    if nul >= 0:
        raise BesagError(
            f"{name}, line {number}, byte {nul + 1} is NUL: this is a binary file, or text that is not UTF-8"
        )
    try:
        return line.decode("utf-8", "surrogateescape" if lenient else "strict")
    except UnicodeDecodeError as failure:
        at = failure.start
        raise BesagError(
            f"{name}, line {number}, byte {at + 1} (0x{line[at]:02x}) is not UTF-8: this is a binary file, or text in "
            "another encoding, which iconv -t utf-8 converts"
        ) from failure
