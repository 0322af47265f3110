"""Files that may be packed: which endings are unpacked, what a damaged one raises. Knows nothing of what is in them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from besag.errors import require

BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError)


class _Zstandard(io.RawIOBase):
    """zstandard's own error is known only where the package is installed; here it is one of `BROKEN`."""

    def __init__(self, path: str) -> None:
        self._package: Any = require("zstandard", "train")
        self._file = self._package.open(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._file.readinto(buffer))
        except self._package.ZstdError as failure:
            raise OSError(str(failure)) from failure

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


OPENERS: Mapping[str, Callable[[str], Any]] = {
    ".gz": gzip.open, ".xz": lzma.open, ".lzma": lzma.open, ".bz2": bz2.open, ".zst": _Zstandard,
}  # fmt: skip


def unpacked(path: str) -> IO[bytes]:
    """The bytes of a file, unpacked if its ending says that it is packed."""
    file: IO[bytes] = OPENERS.get(Path(path).suffix.lower(), _plain)(path)
    return file


def plain_name(path: str) -> str:
    """The name of a file before it was packed."""
    ending = Path(path).suffix
    return path[: -len(ending)] if ending.lower() in OPENERS else path


def _plain(path: str) -> IO[bytes]:
    return open(path, "rb", buffering=0)
