"""A file that grows by whole pieces, goes on where another run ended, and is cut back where the disk is full.

Knows bytes, and nothing of what they say.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, NoReturn

from besag.errors import BesagError, quoted
from besag.files.whole import descriptor, is_stream, sync

TOGETHER = 8192  # bytes that wait until they are written


class Appended:
    """A file that grows by whole pieces (rows), so that what is there is whole whenever the process ends.

    It is opened with the first piece, cut off where another run goes on, and cut back where the disk is full. Only
    kill -9 can tear the last piece, since the system writes page by page: the next run cuts it off.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.kept = 0  # bytes of an earlier run that stay
        self._file: IO[bytes] | None = None
        self._end = 0  # bytes that are there, all of them of whole pieces
        self._waiting = bytearray()
        self._lost: BesagError | None = None  # pieces could not be written: none may follow, for there would be a hole

    def append(self, piece: bytes) -> None:
        self._check()
        if self._file is None:
            try:
                self._file, self._end = _open_at(self.path, self.kept), self.kept
            except BesagError as failure:
                self._lost = failure
                raise
        self._waiting += piece
        if len(self._waiting) >= TOGETHER or is_stream(self.path):
            self.flush()

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, bytearray()
        if self._file is None or not waiting:
            return
        written = 0
        try:
            while written < len(waiting):
                written += self._file.write(waiting[written:])
        except BrokenPipeError:
            raise
        except OSError as failure:
            with suppress(OSError):
                self._file.truncate(self._end)
            self._fail(failure)
        self._end += written

    def size(self) -> int:
        """Bytes that are safely there."""
        self._check()
        if self._file is None:
            return self.kept
        self.flush()
        try:
            sync(self.path)
        except OSError as failure:  # what was handed over may be lost, and a second attempt would not say so
            self._fail(failure)
        return self._end

    def _check(self) -> None:
        if self._lost is not None:
            raise self._lost

    def _fail(self, failure: OSError) -> NoReturn:
        self._lost = BesagError(f"cannot write {quoted(self.path)}: {failure.strerror}")
        raise self._lost from failure

    def keep(self, size: int) -> None:
        check_kept(self.path, size)
        self.kept = size

    def close(self) -> None:
        try:
            self.flush()
        finally:
            if self._file is not None:
                self._file.close()
                self._file, self.kept = None, self._end


class AppendedText:
    """Where text goes: to stdout, at once, or to a file."""

    def __init__(self, path: str | None) -> None:
        self.file = None if path is None else Appended(path)

    def append(self, text: str) -> None:
        if self.file is not None:
            self.file.append(text.encode("utf-8"))
        else:
            sys.stdout.write(text)
            sys.stdout.flush()

    def flush(self) -> None:
        if self.file is not None:
            self.file.flush()

    def size(self) -> int:
        return 0 if self.file is None else self.file.size()

    def keep(self, size: int) -> None:
        if self.file is not None:
            self.file.keep(size)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def check_kept(path: str, size: int) -> None:
    """Are the first `size` bytes, which an earlier run has written, still there?"""
    there = os.path.getsize(path) if os.path.exists(path) else 0
    if there < size:
        raise BesagError(
            f"{path!r} has lost rows: {size:,} bytes of it were done, and there are {there:,}. Put a whole copy in its "
            "place, or say --force to begin anew"
        )


def _open_at(path: str, size: int) -> IO[bytes]:
    """A file from which everything but the first `size` bytes is cut off."""
    try:
        own = None if size else descriptor(path)
        if own is not None:  # by its number: opening it by its name would cut off what a shell has written there
            return open(os.dup(own), "wb", buffering=0)
        file = open(path, "r+b" if size else "wb", buffering=0)  # noqa: SIM115 (closed by `Appended.close`)
        if size:
            file.truncate(size)
            file.seek(size)
        return file
    except OSError as failure:
        raise BesagError(f"cannot write {quoted(path)}: {failure.strerror}") from failure
