"""Every format can be read back, stays one row a line, and leaves nothing half-written."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from besag.errors import BesagError
from besag.files import writing
from besag.files.cells import tsv_line
from besag.files.writing import Delimited, JsonLines, choose_format, print_table, writer


def test_numbers_are_rounded_where_they_are_ours_and_kept_where_they_are_not() -> None:
    encode = Delimited(tsv_line)
    text = encode({"pll": -1.23456789123, "prob": 1.5e-30, "tokens": 3, "nothing": math.nan}, {"id": 0.1234567891234})
    assert text.splitlines() == ["pll\tprob\ttokens\tnothing\tid", "-1.2345679\t1.5e-30\t3\t\t0.1234567891234"]


def test_other_columns_come_along_without_hiding_ours(capsys: pytest.CaptureFixture[str]) -> None:
    encode = Delimited(tsv_line)
    assert encode({"pll": 1, "status": "ok"}, {"status": "draft", "tags": ["a"], "gold": True}).splitlines() == [
        "pll\tstatus\tinput.status\ttags\tgold",
        '1\tok\tdraft\t["a"]\ttrue',
    ]
    assert encode({"pll": 2, "status": "ok"}, {"late": 1, "gold": None}) == "2\tok\t\t\t\n"
    encode({"pll": 2, "status": "ok"}, {"late": 1})
    assert capsys.readouterr().err.count("'late' is left out") == 1


def test_json_has_neither_nan_nor_infinity() -> None:
    line = JsonLines()({"score": math.nan, "parts": [1.0, math.inf], "text": "é\n"}, {"id": 3})
    assert json.loads(line) == {"score": None, "parts": [1.0, "Infinity"], "text": "é\n", "input": {"id": 3}}
    assert line.count("\n") == 1


def test_a_table_is_aligned_and_shows_text_as_it_is() -> None:
    out = io.StringIO()
    print_table([{"text": "[MASK] :smile: a\tb", "pll": -1.0}, {"text": "猫", "pll": math.nan}], out)
    lines = out.getvalue().splitlines()
    assert [line.split() for line in lines if "pll" in line] == [["text", "pll"]]
    assert any(line.split() == ["[MASK]", ":smile:", "a\\tb", "-1.0000"] for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_the_format_follows_the_ending() -> None:
    assert [choose_format(None, f"a.{ending}") for ending in ("csv", "jsonl", "parquet", "tsv", "txt")] == [
        "csv", "jsonl", "parquet", "tsv", "tsv",
    ]  # fmt: skip
    assert choose_format("jsonl", "a.csv") == "jsonl"
    with pytest.raises(BesagError, match="Parquet goes to a file"):
        choose_format("parquet", None)


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "table", "parquet"])
def test_nothing_is_there_before_the_first_row(tmp_path: Path, format: str) -> None:
    path = tmp_path / "out"
    writer(format, str(path), force=False).close()
    assert not path.exists()
    out = writer(format, str(path), force=False)
    out.write({"row": 1, "text": "one"}, {})
    out.close()
    assert path.stat().st_size
    with pytest.raises(BesagError, match="exists already"):
        writer(format, str(path), force=False)
    out = writer(format, str(path), force=True)
    assert path.stat().st_size  # --force writes over it, but not before there is something to write


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="no such folder"):
        writer("tsv", str(tmp_path / "no" / "out.tsv"), force=False)
    with pytest.raises(BesagError, match="is a folder"):
        writer("tsv", str(tmp_path), force=True)


def test_parquet_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PARQUET_ROWS", 2)
    out = writer("parquet", str(tmp_path / "a.parquet"), force=False)
    for row in range(5):  # the first block has neither a score nor a note: their types are known all the same
        out.write({"row": row, "pll": None if row < 2 else -1.5}, {"note": None if row < 2 else "x"})
    out.close()
    table = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert table == {"row": [0, 1, 2, 3, 4], "pll": [None, None, -1.5, -1.5, -1.5], "note": [None, None, "x", "x", "x"]}


def test_parquet_refuses_a_column_that_changes_its_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PARQUET_ROWS", 1)
    out = writer("parquet", str(tmp_path / "a.parquet"), force=False)
    out.write({"row": 1}, {"id": 1})
    with pytest.raises(BesagError, match="changes its type"):
        out.write({"row": 2}, {"id": "two"})
    out.close()
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 1
