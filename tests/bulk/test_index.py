"""Shards hold the rows that `besag score` reads, in runs of a size, wherever files begin and end."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bulk.conftest import in_shards, looked
from tests.files.reading import put, read

from besag.bulk.index import identity, shards
from besag.bulk.reading import Reader
from besag.errors import BesagError
from besag.files.inputs import Layout

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r\n"), max_size=8)
CELLS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12)


def written(folder: Path, format: str, table: list[tuple[str, str]], number: int) -> Path:
    path = folder / f"{number}.{format}"
    if format == "txt":
        return put(path, "".join(f"{text}\n" for text, _ in table))
    if format == "jsonl":
        blank = "\n \n" if number else ""
        return put(path, "".join(f"{json.dumps({'text': text, 'id': other})}\n{blank}" for text, other in table))
    if format == "parquet":
        columns = {"text": [text for text, _ in table], "id": [other for _, other in table]}
        pq.write_table(pa.table(columns), path, row_group_size=3)
        return path
    if format == "tsv":
        lines = [f"{text}\t{other}\n".replace("\n\n", "\n") for text, other in table]
        clean = [f"{text.replace(chr(9), ' ')}\t{other.replace(chr(9), ' ')}\n" for text, other in table]
        return put(path, "\ntext\tid\n" + "".join(clean[: len(lines)]) + "\n")
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([("text", "id"), *((f'{a}"\n{b}', b) for a, b in table)])
    return put(path, buffer.getvalue())


@pytest.mark.parametrize("format", ["txt", "jsonl", "tsv", "csv", "parquet"])
@settings(max_examples=25, deadline=None)
@given(tables=st.lists(CELLS, min_size=1, max_size=3), size=st.integers(1, 7))
def test_shards_together_are_all_rows(
    tmp_path_factory: pytest.TempPathFactory, format: str, tables: list[list[tuple[str, str]]], size: int
) -> None:
    folder = tmp_path_factory.mktemp("index")
    paths = [written(folder, format, table, number) for number, table in enumerate(tables)]
    layout = Layout(column=None if format == "txt" else "text")
    expected = read(*paths, column=layout.column)
    found = in_shards(paths, size, layout)
    assert [record for shard in found for record in shard.records] == expected
    assert [len(shard.records) for shard in found[:-1]] == [size] * (len(found) - 1)
    assert not any(shard.problems for shard in found)


@pytest.mark.parametrize(
    ("content", "rows"),
    [("a\nb\n", 2), ("a\nb", 2), ("\n", 1), ("a\n\n", 2), ("a\r\nb\r\n", 2), ("\ufeffa\n", 1)],
)
def test_lines_of_text_are_rows(tmp_path: Path, content: str, rows: int) -> None:
    path = put(tmp_path / "a.txt", content)
    assert [source.rows for source in looked([path], Layout(), 1)] == [rows]
    assert [record for shard in in_shards([path], 1) for record in shard.records] == read(path)


def test_lines_beyond_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("besag.bulk.index.CHUNK", 7)
    path = put(tmp_path / "a.txt", "".join(f"{number}\n" for number in range(100)))
    for size in (1, 3, 50, 100, 101):
        found = [record.text for shard in in_shards([path], size) for record in shard.records]
        assert found == list(map(str, range(100)))


def test_a_table_without_a_header(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", "the cat\t1\n\na dog\t2\n")
    layout = Layout(header=False, column="1")
    assert [record.text for shard in in_shards([path], 1, layout) for record in shard.records] == ["the cat", "a dog"]


def test_blank_lines_of_one_column_are_rows(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", "text\nthe cat\n\na dog\n")
    found = [record.text for shard in in_shards([path], 2) for record in shard.records]
    assert found == [record.text for record in read(path)] == ["the cat", "", "a dog"]


def test_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\nthree\n"))
    [source] = looked([path], Layout(), 2)
    assert source.packed
    assert [[record.text for record in shard.records] for shard in in_shards([path], 2)] == [["one", "two"], ["three"]]


def test_a_shard_may_span_files(tmp_path: Path) -> None:
    paths = [put(tmp_path / f"{number}.txt", "a\nb\nc\n") for number in range(3)]
    found = shards(looked(paths, Layout(), 4), 4)
    assert [[piece.source for piece in shard.pieces] for shard in found] == [[0, 1], [1, 2], [2]]
    assert [(shard.first, shard.rows) for shard in found] == [(0, 4), (4, 4), (8, 1)]


def test_what_has_no_rows_is_refused(tmp_path: Path) -> None:
    for path in (put(tmp_path / "a.txt", ""), put(tmp_path / "a.tsv", "text\tid\n"), put(tmp_path / "a.jsonl", "\n")):
        with pytest.raises(BesagError, match="has no rows"):
            looked([path], Layout(), 4)


def test_a_changed_end_is_seen(tmp_path: Path) -> None:
    path = put(tmp_path / "a.txt", b"x" * (3 << 20))
    before = identity(str(path))
    put(path, b"x" * ((3 << 20) - 1) + b"y")
    assert identity(str(path)) != before


@pytest.mark.parametrize("spoil", [lambda packed: packed[: len(packed) // 2], lambda packed: b"plain text\n" * 10,
                                   lambda packed: packed[:200] + b"x" * 60 + packed[260:]])  # fmt: skip
def test_a_damaged_file_is_told_in_a_sentence(tmp_path: Path, spoil: Any) -> None:
    """While its rows are counted, and where a shard is read."""
    packed = gzip.compress(b"".join(b"The cat number %d sleeps.\n" % number for number in range(3000)))
    path = tmp_path / "texts.txt.gz"
    path.write_bytes(spoil(packed))
    with pytest.raises(BesagError, match=r"texts\.txt\.gz' cannot be read, it is damaged"):
        looked([path], Layout(), 100)
    path.write_bytes(packed)
    sources = looked([path], Layout(), 100)
    path.write_bytes(spoil(packed))
    with pytest.raises(BesagError, match=r"texts\.txt\.gz' cannot be read, it is damaged"):
        list(Reader(sources, [Layout()]).read(shards(sources, 100)))
