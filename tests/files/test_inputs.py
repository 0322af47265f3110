"""What an argument is, and what stands in it: every format, every way a file can be wrong."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest
from tests.files.reading import put, read, texts

from besag.characters import shown
from besag.errors import BesagError
from besag.files import lines
from besag.files.inputs import Input, Layout, inputs, records

# ---- what an argument is


def test_a_sentence_is_a_text() -> None:
    assert texts("The cats sleep.", "cat", "") == ["The cats sleep.", "cat", ""]


def test_a_file_is_read_and_text_forces_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "cats", "one\ntwo\n")
    assert texts("cats") == ["one", "two"]
    assert texts("cats", as_text=True) == ["cats"]


@pytest.mark.parametrize("argument", ["corpus.txt", "data/corpus", "x.jsonl.gz", "MISSING.TSV", "and/or"])
def test_what_looks_like_a_path_is_never_scored_as_text(argument: str) -> None:
    with pytest.raises(BesagError, match=r"no such file: .*--text"):
        read(argument)
    assert texts(argument, as_text=True) == [argument]


def test_a_sentence_about_a_path_is_a_text() -> None:
    assert texts("Look at corpus.txt") == ["Look at corpus.txt"]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="is a folder"):
        read(tmp_path)


def test_stdin_only_once() -> None:
    with pytest.raises(BesagError, match="only once"):
        read("-", "-")


# ---- lines


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_keep_everything_but_their_ends(tmp_path: Path, end: bytes) -> None:
    path = put(tmp_path / "a.txt", b"\xef\xbb\xbf" + end.join([b" a ", b"", "é\u2028b".encode(), b"last"]))
    assert texts(path) == [" a ", "", "é\u2028b", "last"]


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress), ("", bytes)]
)
def test_compression_is_transparent(tmp_path: Path, ending: str, pack: type) -> None:
    path = put(tmp_path / f"a.tsv{ending}", pack(b"id\ttext\n1\tone\n2\ttwo\n"))
    assert texts(path) == ["one", "two"]


def test_where_and_number(tmp_path: Path) -> None:
    a, b = put(tmp_path / "a.txt", "one\ntwo\n"), put(tmp_path / "b.csv", "text\nthree\n")
    found = read(a, "four five", b)
    assert [record.number for record in found] == [1, 2, 3, 4]
    assert found[1].where == f"{a}, line 2"
    assert found[3].where == f"{b}, line 2"
    assert "four five" in found[2].where


@pytest.mark.parametrize(("skip", "limit", "expected"), [(0, 2, "ab"), (1, 2, "bc"), (3, None, "d"), (2, 9, "cd")])
def test_skip_and_limit(tmp_path: Path, skip: int, limit: int | None, expected: str) -> None:
    a, b = put(tmp_path / "a.txt", "a\nb\nc\n"), put(tmp_path / "b.txt", "d\n")
    found = read(a, b, skip=skip, limit=limit)
    assert "".join(record.text for record in found) == expected
    assert found[0].number == skip + 1


def test_skipping_everything_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="--skip 5 passes over all 2 rows"):
        read(put(tmp_path / "a.txt", "a\nb\n"), skip=5)


# ---- files that are wrong


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl", "a.txt.gz"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BesagError, match=r"is empty: there is no text in it"):
        read(put(tmp_path / name, gzip.compress(b"") if name.endswith("gz") else b""))


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="a header but no rows"):
        read(put(tmp_path / "a.tsv", "id\ttext\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\nfine\nab\0c\n", r"line 3, byte 3 is NUL: this is a binary file"),
        ("utf sixteen\n".encode("utf-16"), "begins like UTF-16 or UTF-32, and text must be UTF-8: iconv"),
        ("utf\n".encode("utf-16-be"), "line 1, byte 1 is NUL: .* not UTF-8"),
        ("猫".encode("utf-16"), "begins like UTF-16"),
    ],
)
def test_a_binary_or_badly_encoded_file_is_refused_where_it_fails(tmp_path: Path, content: bytes, message: str) -> None:
    path = put(tmp_path / "a.txt", content)
    with pytest.raises(BesagError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b"line %d\n" % number for number in range(50_000)))
    with pytest.raises(BesagError, match=r"a\.txt\.gz cannot be read beyond line \d+"):
        read(put(tmp_path / "a.txt.gz", whole[: len(whole) // 2]))
    with pytest.raises(BesagError, match="cannot be read beyond line 0"):
        read(put(tmp_path / "b.txt.gz", b"not gzip at all"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = put(tmp_path / "a.txt", "a\n")
    path.chmod(0)
    with pytest.raises(BesagError, match="cannot read"):
        read(path)


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl", "a.txt.gz"])
def test_bytes_that_are_not_utf8_belong_to_their_row(tmp_path: Path, name: str) -> None:
    row = {"txt": b"b\xe9d", "tsv": b"b\xe9d\t1", "csv": b'"b\xe9d",1', "jsonl": b'{"text": "b\xe9d", "x": 1}'}
    kind = name.removesuffix(".gz")[2:]
    header = {"tsv": b"text\tx\n", "csv": b"text,x\n"}.get(kind, b"")
    content = header + row[kind].replace(b"\xe9", b"a") + b"\n" + row[kind] + b"\n"
    path = put(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
    assert [shown(record.text) for record in read(path)] == ["bad", "b\\xe9d"]


def test_half_a_surrogate_pair_belongs_to_its_row(tmp_path: Path) -> None:
    [record] = read(put(tmp_path / "a.jsonl", '{"text": "\\ud83d", "\\udc00": "\\udc01"}\n'))
    assert (record.text, record.others) == ("\ud83d", {"\udc00": "\udc01"})


@pytest.mark.parametrize("content", ["The cat sat.\nThe dog ran.\n", "comment\nThe cat sat.\n"])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_table_of_one_column_does_not_lose_its_first_text(tmp_path: Path, name: str, content: str) -> None:
    path = put(tmp_path / name, content)
    with pytest.raises(BesagError, match=r"begins with '.*': say --column 1 if that is the name .* --no-header if it"):
        read(path)
    assert [len(read(path, **said)) for said in ({"column": "1"}, {"header": False})] == [1, 2]
    assert texts(put(path, "text\nThe cat sat.\n")) == ["The cat sat."]


@pytest.mark.parametrize("name", ["a\0b.txt", "a\0b.parquet", "x" * 5000 + ".txt"])
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(BesagError):
        read(name)


@pytest.mark.parametrize(
    ("name", "content", "layout"),
    [
        ("nul.txt", b"one\n\x00two\nthree\n", Layout()),
        ("rows.jsonl", b'{"text": "one"}\n{"text": \n', Layout()),
        ("table.tsv", b"a\tb\n1\t2\n", Layout()),  # no column of texts
        ("table.csv", b"text,b\none,2\nthree\n", Layout()),
        ("named.tsv", b"text\tb\none\t2\n", Layout(column="c")),
    ],
)
def test_a_file_is_closed_after_a_rejection(tmp_path, monkeypatch, name, content, layout):
    """Also while the error, and with it the frames that read, is still there."""
    path = tmp_path / name
    path.write_bytes(content)
    streams, unpacked = [], lines.unpacked
    monkeypatch.setattr(lines, "unpacked", lambda *given: streams.append(unpacked(*given)) or streams[-1])
    with pytest.raises(BesagError) as rejection:
        for _ in records(inputs([str(path)], as_text=False, layout=layout)):
            pass
    assert streams
    assert all(stream.closed for stream in streams), rejection


def test_a_file_that_nobody_reads_is_not_opened(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    opened = []
    monkeypatch.setattr(lines, "unpacked", lambda *given: opened.append(given))
    lines.lines_of(str(path))
    Input("file", str(path), Layout()).texts()
    assert not opened
