"""What stands in a line: columns, fields, cells, and every way a table can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.files.reading import put, read, texts

from besag.characters import all_shown, shown
from besag.errors import BesagError
from besag.files import rows


def test_columns_by_name_by_number_and_by_custom(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", 'id\tsentence\tlabel\n7\tHe said "hi".\tx\n')
    assert read(path)[0].others == {"id": "7", "label": "x"}
    assert texts(path) == texts(path, column="sentence") == texts(path, column="2") == ['He said "hi".']
    assert texts(path, column="label") == ["x"]
    assert read(path, keep=False)[0].others == {}
    assert texts(put(tmp_path / "b.tsv", "7\tone\n8\ttwo\n"), header=False, column="2") == ["one", "two"]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.parquet"])
def test_a_wrong_column_is_answered_with_the_nearest(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({"id": [1], "sentence": ["one"]}), path)
    elif name.endswith("jsonl"):
        put(path, '{"id": 1, "sentence": "one"}\n')
    else:
        put(path, "id,sentence\n1,one\n".replace(",", "\t" if name.endswith("tsv") else ","))
    with pytest.raises(BesagError, match=r"no column 'sentense': .* columns id, sentence. Did you mean 'sentence'"):
        read(path, column="sentense")
    with pytest.raises(BesagError, match="no column '3'"):
        read(path, column="3")


@pytest.mark.parametrize("header", ["a\tb", "text\tsentence"])
def test_a_column_must_be_named_where_two_could_be_meant(tmp_path: Path, header: str) -> None:
    with pytest.raises(BesagError, match="which column holds the texts"):
        read(put(tmp_path / "a.tsv", f"{header}\n1\t2\n"))


def test_one_column_may_hold_empty_rows(tmp_path: Path) -> None:
    assert texts(put(tmp_path / "a.csv", "text\none\n\ntwo\n")) == ["one", "", "two"]


def test_an_empty_line_in_a_table_of_several_columns_is_no_row(tmp_path: Path) -> None:
    assert texts(put(tmp_path / "a.tsv", "id\ttext\n1\tone\n\n2\t\n")) == ["one", ""]


def test_a_ragged_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="line 3 has 1 cells, but the table has 2 columns"):
        read(put(tmp_path / "a.tsv", "id\ttext\n1\tone\ntwo\n"))


def test_columns_of_one_name_are_all_kept(tmp_path: Path) -> None:
    assert read(put(tmp_path / "a.tsv", "x\ttext\tx\n1\tone\t2\n"))[0].others == {"x": "1", "x.2": "2"}


def test_csv_cells_may_be_quoted_and_run_over_lines(tmp_path: Path) -> None:
    content = 'id,text\n1,"a, ""b"""\n2,"first\n\nsecond"\n3,5" disk\n'
    assert texts(put(tmp_path / "a.csv", content)) == ['a, "b"', "first\n\nsecond", '5" disk']
    assert [record.where.split(", ")[1] for record in read(tmp_path / "a.csv")] == ["line 2", "line 3", "line 6"]


@pytest.mark.parametrize(
    ("row", "message"), [('1,"never closed\n2,x\n', "line 2 opens a quote"), ('1,"a"b\n', "line 2 is not CSV")]
)
def test_broken_csv_is_refused(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(BesagError, match=message):
        read(put(tmp_path / "a.csv", f"id,text\n{row}"))


def test_json_lines(tmp_path: Path) -> None:
    lines = ['{"id": 1, "text": "one", "more": {"a": [1]}}', "", '"two"', '{"text": null, "id": 3}']
    found = read(put(tmp_path / "a.jsonl", "\n".join(lines)))
    assert [record.text for record in found] == ["one", "two", ""]
    assert found[0].others == {"id": 1, "more": {"a": [1]}}
    assert found[2].where.endswith("line 4")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[", r"line 1 is not JSON \(an array\? jq"),
        ("{oops", "line 1 is not JSON"),
        ("3", "neither an object nor a string"),
        ('{"text": 3}', "'text' is 3, not a text"),
        ('{"text": "a", "x": ' + "[" * 3000 + "]" * 3000 + "}", "line 1 is nested more than 100 deep"),
        ('{"text": "a", "x": ' + '{"a": ' * 101 + "1" + "}" * 102, "line 1 is nested more than 100 deep"),
        ('{"text": "a", "x": ' + "9" * 5000 + "}", "line 1 has a number of more digits than can be read"),
        ('{"text": "a"}\n{"tekst": "b"}', r"line 2 has no 'text'; it has tekst. Did you mean 'tekst'"),
    ],
)
def test_broken_json_lines_are_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(BesagError, match=message):
        read(put(tmp_path / "a.json", line))


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": list(range(2500)), "text": [f"text {i}" for i in range(2500)]}), path)
    found = read(path)
    assert [record.text for record in found] == [f"text {i}" for i in range(2500)]
    assert (found[-1].where, found[-1].others) == (f"{path}, row 2500", {"id": 2499})
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    with pytest.raises(BesagError, match="no rows"):
        read(path)
    with pytest.raises(BesagError, match="not a Parquet file"):
        read(put(path, "PAR0 or whatever"))


def test_the_format_can_be_said(tmp_path: Path) -> None:
    assert texts(put(tmp_path / "data", json.dumps({"text": "one"})), format="jsonl") == ["one"]
    assert texts(put(tmp_path / "a.csv", "a,b\n"), format="text") == ["a,b"]


def _strings(*values: bytes | None) -> pa.Array:
    """A column that says that it is text, and may not be."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def test_texts_of_parquet_that_are_not_utf8_belong_to_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    column = _strings(b"one", b"tw\xe9", None)
    nested = pa.StructArray.from_arrays([column, pa.array([[1], [2], [3]])], names=["a", "b"])
    pq.write_table(pa.table({"text": column, "nested": nested}), path)
    found = read(path)
    assert [shown(record.text) for record in found] == ["one", "tw\\xe9", ""]
    assert [record.others["nested"]["b"] for record in found] == [[1], [2], [3]]  # type: ignore[index]
    assert all_shown(found[1].others) == {"nested": {"a": "tw\\xe9", "b": [2]}}
    with pytest.raises(BesagError, match=r"row 2 holds a text that is not UTF-8: byte 0xe9"):
        list(rows.read(str(path)))


def test_parquet_that_unpacks_to_rows_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONGEST_ROW", 1 << 20)
    pq.write_table(pa.table({"text": ["x" * (1 << 24)]}), tmp_path / "a.parquet", compression="zstd")
    with pytest.raises(BesagError, match="has rows of more than 1 MiB: is this text"):
        read(tmp_path / "a.parquet")


def test_csv_with_a_lone_return_or_a_long_cell(tmp_path: Path) -> None:
    long = "a" * 200_000
    assert read(put(tmp_path / "a.csv", f"text,x\na,{long}\n"))[0].others == {"x": long}
    with pytest.raises(BesagError, match="line 2 is not CSV"):
        read(put(tmp_path / "a.csv", "text,x\na\rb,1\n"))


def test_messages_list_few_of_many_columns(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", "\t".join(f"c{place}" for place in range(5000)) + "\n" + "\t" * 4999 + "\n")
    with pytest.raises(BesagError, match=r"c19, … \(5,000 in all\)"):
        read(path)
