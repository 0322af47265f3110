"""Bytes into lines: however they arrive, in bounded memory."""

from __future__ import annotations

import gzip
import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.reading import put, read

from besag.errors import BesagError
from besag.files import lines as reading
from besag.files import rows
from besag.files.lines import LONGEST_LINE, lines_of, small_file


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r")), min_size=1),
    st.integers(1, 7),
)
def test_lines_do_not_depend_on_how_the_bytes_arrive(lines: list[str], size: int) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    chunks = iter([data[at : at + size] for at in range(0, len(data), size)])
    found = [line for line in reading.lines("x", chunks) if line is not None]
    expected = [lines[0].removeprefix("\ufeff"), *lines[1:]]
    assert found == list(enumerate(expected, 1))


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE", 100)
    monkeypatch.setattr(reading, "CHUNK", 64)
    with pytest.raises(BesagError, match="line 2 is longer than"):
        read(put(tmp_path / "a.txt", "short\n" + "x" * 1000))


def test_a_line_without_end_takes_no_more_memory_than_the_longest_line(tmp_path: Path) -> None:
    path = tmp_path / "zeros.txt"
    with open(path, "wb") as file:
        for _ in range(5):
            file.write(b"x" * LONGEST_LINE)
    tracemalloc.start()
    with pytest.raises(BesagError, match="line 1 is longer than 16 MiB: is this text"):
        list(lines_of(str(path)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.5 * LONGEST_LINE


@pytest.mark.parametrize("ending", ["txt", "tsv", "csv", "jsonl"])
def test_a_packed_line_is_refused_before_it_is_unpacked_whole(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"long.{ending}.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(12):
            file.write(b"x" * (1 << 22))  # 48 MiB of one line, in a quarter of one of a file
    assert path.stat().st_size < 1 << 20
    for reader in (lambda: read(path), lambda: list(rows.read(str(path)))):
        tracemalloc.start()
        with pytest.raises(BesagError, match="line 1 is longer than 16 MiB: is this text"):
            reader()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 1.5 * LONGEST_LINE


def test_a_document_is_read_at_once_and_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 64)
    monkeypatch.setattr(reading, "LONGEST_LINE", 1 << 20)
    path = put(tmp_path / "a.toml", b"x" * (1 << 20))
    assert small_file(str(path)) == b"x" * (1 << 20)
    with pytest.raises(BesagError, match="is larger than 1 MiB: that is no settings file"):
        small_file(str(put(path, b"x" * ((1 << 20) + 1))))
    packed = put(tmp_path / "a.toml.gz", gzip.compress(b"x" * (1 << 24)))
    with pytest.raises(BesagError, match="is larger than 1 MiB"):
        small_file(str(packed))
    with pytest.raises(BesagError, match=r"cannot be read beyond byte 0: .*it is damaged"):
        small_file(str(put(packed, b"no gzip")))


def test_a_name_with_nul_is_no_file() -> None:
    with pytest.raises(BesagError, match=r"no file can be called 'a\\x00b': there is a NUL"):
        list(lines_of("a\0b"))


def test_a_missing_file_is_answered_with_its_neighbour(tmp_path: Path) -> None:
    put(tmp_path / "corpus.txt", "a")
    with pytest.raises(BesagError, match=r"no such file: .*corpsu\.txt'\. Did you mean 'corpus\.txt'"):
        list(lines_of(str(tmp_path / "corpsu.txt")))
    with pytest.raises(BesagError, match="is a folder: name the files in it"):
        list(lines_of(str(tmp_path)))


# ---- what arrives little by little


def test_a_pause_is_noticed_and_memory_is_bounded() -> None:
    out, into = os.pipe()
    written = 0

    def write() -> None:
        nonlocal written
        os.write(into, b"first\n")
        pause.wait(10)
        for _ in range(400):
            written += os.write(into, b"x" * 9_999 + b"\n")
        os.close(into)

    pause = threading.Event()
    writing = threading.Thread(target=write)
    writing.start()
    with open(out, "rb", buffering=0) as stream:
        lines = reading.lines("pipe", reading.arriving(lambda: stream))
        assert next(lines) == (1, "first")
        assert next(lines) is None  # nothing more for now
        pause.set()
        while (line := next(lines)) is None:
            pass
        assert line[1] == "x" * 9_999
        writing.join(0.3)
        # Nobody reads on, so the writer is held up: the pipe's own buffer and a few chunks are all that is ahead.
        assert written < 2**16 + (reading.CHUNKS_AHEAD + 3) * reading.CHUNK
        assert sum(line is not None for line in lines) == 399
    writing.join()
