"""Files that may be packed: which endings are unpacked, what a damaged one raises. Knows nothing of what is in them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

OPENERS: Mapping[str, Callable[[str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".lzma": lzma.open, ".bz2": bz2.open}
BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError)


def unpacked(path: str) -> IO[bytes]:
    """The bytes of a file, unpacked if its ending says that it is packed."""
    file: IO[bytes] = OPENERS.get(Path(path).suffix.lower(), _plain)(path)
    return file


def _plain(path: str) -> IO[bytes]:
    return open(path, "rb")
