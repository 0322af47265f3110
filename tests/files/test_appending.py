"""A file that grows holds whole pieces without a gap, whichever write, truncation or fsync fails."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from besag.errors import BesagError
from besag.files import appending
from besag.files.appending import TOGETHER, Appended

PIECES = [bytes([letter]) * TOGETHER for letter in b"abcdef"]  # each is written at once


class FullDisk:
    """A file whose `fails`-th write stores half of its bytes, and whose next one raises; later writes succeed."""

    def __init__(self, file: Any, fails: int) -> None:
        self.file, self.fails, self.writes = file, fails, 0

    def write(self, content: bytes) -> int:
        self.writes += 1
        if self.writes == self.fails + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(self.file.write(content[: len(content) // 2] if self.writes == self.fails else content))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@pytest.mark.parametrize("fails", range(1, len(PIECES) + 1))
def test_no_piece_follows_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int) -> None:
    opened = appending._open_at
    monkeypatch.setattr(appending, "_open_at", lambda path, size: FullDisk(opened(path, size), fails))
    path, raised = tmp_path / "rows", []
    out = Appended(str(path))
    for number, piece in enumerate(PIECES, 1):  # a caller that survives every error
        try:
            out.append(piece)
        except BesagError:
            raised.append(number)
    with pytest.raises(BesagError, match="rows"):
        out.size()
    out.close()
    assert raised == list(range(fails, len(PIECES) + 1))
    assert path.read_bytes() == b"".join(PIECES[: fails - 1])


def test_no_piece_follows_a_failed_opening(tmp_path: Path) -> None:
    out = Appended(str(tmp_path / "folder" / "rows"))
    with pytest.raises(BesagError, match="rows"):
        out.append(b"one\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BesagError, match="rows"):
        out.append(b"two\n")
    assert not (tmp_path / "folder" / "rows").exists()


def test_no_piece_follows_a_failed_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Appended(str(tmp_path / "rows"))
    out.append(b"one\n")

    def broken(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(BesagError, match="Input/output error"):
            out.size()
    with pytest.raises(BesagError, match="Input/output error"):
        out.append(b"two\n")
    out.close()
