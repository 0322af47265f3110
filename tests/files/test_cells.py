"""Any text that is written is read back, by our own readers and by other people's."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.characters import shown
from besag.files.cells import cell, csv_line, escaped, harmless, json_line, tsv_line, unescaped
from besag.files.rows import read, rows

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FILED = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))  # NUL is refused: a binary file


@given(st.lists(ANY_TEXT, min_size=1))
def test_tsv_is_one_line_a_row_and_can_be_read_back(cells: list[str]) -> None:
    line = tsv_line(cells)
    assert line.count("\n") == 1
    assert [unescaped(cell) for cell in line.removesuffix("\n").split("\t")] == cells


@given(st.text("\\tnrx\t\n\r"))
def test_escapes_are_undone_once(text: str) -> None:
    assert unescaped(escaped(text)) == text


def test_what_is_no_escape_stays() -> None:
    assert unescaped("\\alpha \\") == "\\alpha \\"


@given(st.lists(ANY_TEXT.filter(lambda cell: "\0" not in cell), min_size=1))
def test_csv_can_be_read_back(cells: list[str]) -> None:
    assert next(csv.reader(io.StringIO(csv_line(cells), newline=""))) == cells


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl"])
@given(table=st.lists(st.tuples(FILED, FILED), min_size=1))
def test_what_one_end_writes_the_other_reads(
    tmp_path_factory: pytest.TempPathFactory, format: str, table: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round.{format}"
    if format == "jsonl":
        text = "".join(json_line({"a": a, "b": b}) for a, b in table)
    else:
        line = tsv_line if format == "tsv" else csv_line
        text = "".join(line(list(row)) for row in [("a", "b"), *table])
    path.write_bytes(text.encode())
    assert [tuple(row.values.values()) for row in read(str(path), escaped=True)] == table  # type: ignore[union-attr]


def test_a_corpus_that_was_not_escaped_is_read_as_it_is(tmp_path: Path) -> None:
    lines = [(1, "text"), (2, "\\times \\nu")]
    assert [row.values for row in rows(iter(lines), "tsv", "x") if row] == [{"text": "\\times \\nu"}]


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-cmd", "@SUM(A1)", "\t=1", "\rx", "'=1", '"=1+1"', "-1-1", "\uff1d1"]
)
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=b", "'tis", "-1.5", "+2e-30", "-inf", "It's = 3", "-9.8472"])
def test_what_it_would_not_run_stays(text: str) -> None:
    assert harmless(text) == text


@given(st.text("='\"+-@\t\r\nab 1.", max_size=6) | ANY_TEXT)
def test_the_apostrophe_can_be_taken_off_again(text: str) -> None:
    """As docs/files.md says: where an apostrophe stands before what a formula begins with, the first one was added."""
    found = harmless(text)
    again = re.sub("^'(?=['\"]*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])", "", found)
    assert again == text


@given(st.text(st.characters()))
def test_every_text_is_written_so_that_it_can_be_read(text: str) -> None:
    assert json.loads(json_line({text: [text]}).encode()) == {shown(text): [shown(text)]}
    assert cell(text).encode().decode() == shown(text)
    assert json.loads(cell({"a": text}).encode()) == {"a": shown(text)}
