"""Where files lie: on a disk, or behind a URL that fsspec knows (s3://, gs://, hdfs://, memory://).

A file is there whole or not at all. On a disk it is written under another name and renamed (`files/whole.py`); behind a
URL it is written in a transaction of fsspec, which makes it visible when all of it is there. Knows bytes and names.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from besag.errors import BesagError, quoted, require
from besag.files.lines import opened as opened_file
from besag.files.whole import whole

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def is_url(path: str) -> bool:
    return bool(_URL.match(path))


def opened(path: str, packed: bool = False) -> IO[bytes]:
    """The bytes of a file, unpacked where its ending says that it is packed (or as they lie there: `packed`)."""
    if is_url(path):
        fsspec: Any = require("fsspec", extra="bulk")
        try:
            return cast(IO[bytes], fsspec.open(path, "rb", compression=None if packed else "infer").open())
        except (OSError, ValueError, ImportError) as failure:
            raise BesagError(f"cannot read {quoted(path)}: {failure}") from failure
    if not os.path.isfile(path) and os.path.exists(path):
        raise BesagError(f"{quoted(path)} is no file: bulk work reads its input more than once, so give files or URLs")
    raw = open(path, "rb", buffering=0) if packed and os.path.isfile(path) else opened_file(path)  # noqa: SIM115
    return raw if isinstance(raw, io.BufferedIOBase) else io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20)  # type: ignore[return-value]


def size_of(path: str) -> int:
    if is_url(path):
        fs, place = _behind(path)
        try:
            return int(fs.size(place))
        except OSError as failure:
            raise BesagError(f"cannot read {quoted(path)}: {failure}") from failure
    opened(path).close()  # which knows what to say of a file that is not there
    return os.stat(path).st_size


def go_to(file: IO[bytes], at: int, now: int) -> None:
    """Forward to a byte, also in what cannot be sought in."""
    if file.seekable():
        file.seek(at)
        return
    while now < at:
        read = len(file.read(min(1 << 20, at - now)))
        if not read:
            return
        now += read


class Folder:
    """The folder of a job, on a disk or behind a URL."""

    def __init__(self, path: str) -> None:
        self.path, self.remote = path, is_url(path)

    def at(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}" if self.remote else os.path.join(self.path, name)

    def make(self, name: str = "") -> None:
        if self.remote:
            fs, place = _behind(self.at(name))
            fs.makedirs(place, exist_ok=True)
            return
        try:
            os.makedirs(self.at(name), exist_ok=True)
        except OSError as failure:
            raise BesagError(f"cannot make the folder {quoted(self.at(name))}: {failure.strerror}") from failure

    def names(self, folder: str) -> set[str]:
        """What lies in a folder of it; nothing where there is none."""
        with suppress(FileNotFoundError, NotADirectoryError):
            if not self.remote:
                return set(os.listdir(self.at(folder)))
            fs, place = _behind(self.at(folder))
            fs.invalidate_cache()
            return {str(entry).rstrip("/").rpartition("/")[2] for entry in fs.ls(place, detail=False)}
        return set()

    def read(self, name: str) -> bytes:
        """What a file holds."""
        with opened(self.at(name), packed=True) as file:
            return file.read()

    def has(self, name: str) -> bool:
        if not self.remote:
            return os.path.exists(self.at(name))
        fs, place = _behind(self.at(name))
        fs.invalidate_cache()
        return bool(fs.exists(place))

    def write(self, name: str, content: bytes) -> None:
        """All of it, or nothing."""
        if not self.remote:
            with whole(self.at(name)) as draft:
                Path(draft).write_bytes(content)
            return
        fs, place = _behind(self.at(name))
        try:
            with fs.transaction, fs.open(place, "wb") as file:
                file.write(content)
        except OSError as failure:
            raise BesagError(f"cannot write {quoted(self.at(name))}: {failure}") from failure

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            if not self.remote:
                os.unlink(self.at(name))
                return
            fs, place = _behind(self.at(name))
            fs.rm(place)


def _behind(path: str) -> tuple[Any, str]:
    """The file system of a URL, and what the file is called there."""
    fsspec: Any = require("fsspec", extra="bulk")
    try:
        fs, place = fsspec.core.url_to_fs(path)
    except (ValueError, ImportError) as failure:
        raise BesagError(f"cannot reach {quoted(path)}: {failure}") from failure
    return fs, str(place)
