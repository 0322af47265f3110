"""Columns as users name them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.files.reading import put, read, texts

from besag.errors import BesagError
from besag.files.columns import columns, has, top, usual, value

ROW = {"id": 7, "hyps": [{"text": "one", "n": 1}, {"text": "two"}], "meta": {"a.b": 3, "text": None}, "x.y": 5}


@pytest.mark.parametrize(
    ("path", "found"),
    [("id", 7), ("hyps.0.text", "one"), ("hyps.1.text", "two"), ("hyps.1", {"text": "two"}), ("meta.text", None),
     ("meta.a.b", 3), ("x.y", 5)],
)  # fmt: skip
def test_a_path_leads_into_nested_fields(path: str, found: object) -> None:
    assert value(ROW, path, "here") == found
    assert has(ROW, path, "here")


@pytest.mark.parametrize("path", ["hyps.2.text", "hyps.0.tekst", "id.text", "meta.a", "nothing", "nothing.text"])
def test_a_path_that_leads_nowhere(path: str) -> None:
    assert not has(ROW, path, "here")
    with pytest.raises(BesagError, match=f"here has no '{path}'; it has id, hyps, meta, x.y"):
        value(ROW, path, "here")


def test_a_list_must_be_told_which() -> None:
    with pytest.raises(BesagError, match=r"a list of 2 before 'text'; say which, as in 0\.text"):
        value(ROW, "hyps.text", "here")


def test_names_numbers_and_what_is_meant_without_them() -> None:
    names = ["id", "2", "sentence"]
    assert columns(names, ["sentence", "3", "2", "1", "id.x"], "t") == ["sentence", "sentence", "2", "id", "id.x"]
    assert usual(names, ("text", "sentence")) == "sentence"
    assert usual(["a", "b"], ("text",)) is None
    assert usual(["a"], ("text",)) == "a"
    assert top(["a.b", "a"], "a.b.c") == "a"
    with pytest.raises(BesagError, match=r"no column 'sentense': t has the columns .*Did you mean 'sentence'"):
        columns(names, ["sentense"], "t")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_nested_fields_of_files(tmp_path: Path, ending: str) -> None:
    rows = [{"id": 1, "hyps": [{"text": "one"}, {"text": "two"}]}, {"id": 2, "hyps": [{"text": "three"}]}]
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        put(path, "".join(json.dumps(row) + "\n" for row in rows))
    assert texts(path, column="hyps.0.text") == texts(path, column="hyps.0.text", keep=False) == ["one", "three"]
    assert read(path, column="hyps.0.text")[0].others == rows[0]  # what holds a nested text holds more, and stays
    with pytest.raises(BesagError, match=r"row 2|line 2.* has no 'hyps\.1\.text'"):
        read(path, column="hyps.1.text")
