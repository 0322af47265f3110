"""`besag marginals`: the table of `lm.marginals`, in every shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, column, put, table

import besag

TEXT = "The dog ran into the house."


@pytest.fixture(scope="module")
def found() -> besag.Marginals:
    return besag.load(device="cpu", progress=False).marginals(TEXT, ["dog", "cat"])


def test_one_row_a_place_and_candidate(run: Run, found: besag.Marginals) -> None:
    result = run("marginals", TEXT, "--candidates", "dog,cat")
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    assert list(rows[0]) == ["text_id", "place", "token", "candidate", "log_prob", "effect"]
    assert len(rows) == 2 * len(found)
    assert column(result.stdout, "log_prob") == pytest.approx(found.log_probs.ravel().tolist(), abs=1e-3)
    assert column(result.stdout, "effect") == pytest.approx(found.effects.ravel().tolist(), abs=1e-3)


def test_wide_rows_of_a_file(run: Run, found: besag.Marginals, tmp_path: Path) -> None:
    path = put(tmp_path / "texts.txt", f"{TEXT}\nIt rained.\n")
    result = run("marginals", path, "--candidates", "dog, cat", "--wide")
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    assert {row["text_id"] for row in rows} == {"1", "2"}
    first = [float(row["cat"]) for row in rows if row["text_id"] == "1"]
    assert first == pytest.approx(found.log_probs[:, 1].tolist(), abs=1e-3)


def test_json_holds_a_text_a_line_and_a_terminal_the_likeliest(run: Run, found: besag.Marginals) -> None:
    told = json.loads(run("marginals", TEXT, "--candidates", "dog,cat", "--format", "jsonl").stdout)
    assert told["places"][1]["log_probs"]["cat"] == pytest.approx(found.log_prob(2, "cat"), abs=1e-3)
    shown = run("marginals", TEXT, "--format", "table")
    assert "likeliest" in shown.stdout
    assert "log p of 12,288 tokens" in shown.stdout


def test_what_is_wrong_is_said(run: Run, tmp_path: Path) -> None:
    empty = run("marginals", put(tmp_path / "texts.txt", "\nIt rained.\n"), "--candidates", "dog")
    assert empty.exit_code == 3
    assert "line 1: not asked: the text is empty" in empty.stderr
    assert {row["text_id"] for row in table(empty.stdout)} == {"2"}
    wrong = run("marginals", TEXT, "--candidates", "xylophonists")
    assert wrong.exit_code == 2
    assert "'xylophonists' is" in wrong.stderr
