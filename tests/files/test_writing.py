"""Every format can be read back, stays one row a line, and leaves nothing half-written."""

from __future__ import annotations

import io
import json
import math
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from besag.errors import BesagError
from besag.files import writing
from besag.files.cells import tsv_line
from besag.files.encoding import Delimited, JsonLines
from besag.files.progress import Spool
from besag.files.rows import read
from besag.files.writing import choose_format, print_table, writer


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


@pytest.mark.skipif(os.name != "posix", reason="there are no such devices")
@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "table", "parquet"])
def test_a_device_needs_no_force(format: str) -> None:
    out = writer(format, os.devnull, force=False)
    out.write({"text": "a", "pll": -1.0}, {})
    out.close()
    assert os.path.exists(os.devnull)
    assert not os.path.isfile(os.devnull)


@pytest.mark.skipif(os.name != "posix", reason="there are no such devices")
def test_what_a_shell_has_opened_is_written_after_what_is_there(tmp_path: Path) -> None:
    with open(tmp_path / "log", "ab") as shell:  # as in: echo before > log; besag … -o /dev/fd/N >> log
        shell.write(b"before\n")
        shell.flush()
        out = writer("tsv", f"/dev/fd/{shell.fileno()}", force=False)
        out.write({"text": "a"}, {})
        out.close()
        shell.write(b"after\n")
    assert (tmp_path / "log").read_text() == "before\ntext\na\nafter\n"


@pytest.mark.parametrize(("format", "tab"), [("tsv", "\t"), ("csv", ",")])
def test_cells_that_a_spreadsheet_would_run(format: str, tab: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{format}"
    for safe, mark in ((True, "'"), (False, "")):
        out = writer(format, str(path), force=True, spreadsheet_safe=safe)
        out.write({"text": "=1+1", "pll": -1.5}, {"@x": "-3", "y": "+a"})
        out.close()
        assert path.read_text().splitlines() == [
            tab.join(["text", "pll", f"{mark}@x", "y"]), tab.join([f"{mark}=1+1", "-1.5", "-3", f"{mark}+a"])
        ]  # fmt: skip


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet"])
def test_what_no_encoding_can_write_is_shown(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    out = writer(choose_format(None, str(path)), str(path), force=False)
    out.write({"text": "a\udce9", "pll": 1.0}, {"\ud800": ["é", "\ud801"]})
    out.close()
    [row] = read(str(path), escaped=True)
    others = row.values["input"] if ending == "jsonl" else row.values  # type: ignore[index]
    assert row.values["text"] == "a\\xe9"  # type: ignore[index]
    assert others["\\ud800"] in (["é", "\\ud801"], json.dumps(["é", "\\ud801"], ensure_ascii=False))  # type: ignore[index]


def test_numbers_that_parquet_cannot_hold(tmp_path: Path) -> None:
    for make in (lambda path: writer("parquet", path, force=False), Spool):
        out = make(str(tmp_path / "a.parquet"))
        out.write({"text": "a"}, {"id": 10**29})
        with pytest.raises(BesagError, match="no whole numbers of more than 64 bits"):
            out.close()
