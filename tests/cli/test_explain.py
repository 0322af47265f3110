"""`besag explain`: one text or many, on the screen or as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, put, table

import besag

TEXT = "The capital of France is [MASK]."
QUICK = ("--set", "candidates=3")


def test_a_row_is_a_token_as_python_has_it(run: Run) -> None:
    result = run("explain", TEXT, "--target", "Paris", *QUICK)
    assert result.exit_code == 0, result.stderr
    lines = table(result.stdout)
    found = besag.load().explain(TEXT, "Paris", candidates=3)
    assert [int(line["position"]) for line in lines] == list(found.positions)
    assert [float(line["importance"]) for line in lines] == pytest.approx(found.values.tolist(), abs=1e-3)
    assert lines[0]["prediction"] == found.prediction


def test_a_file_has_its_faithfulness_told_and_what_is_refused(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path / "a.txt", f"{TEXT}\nShe drank a cup of [MASK].\n[MASK]\n")
    picture = tmp_path / "first.png"
    result = run("explain", file, "--method", "mask", "--curve", "--orders", 2, "--format", "jsonl", "--plot", picture)
    assert result.exit_code == 3
    one, other = [json.loads(line) for line in result.stdout.splitlines()]
    assert one["curve"]["orders"] == 2
    assert other["text_id"] == 2
    assert "the mean of 2 texts" in result.stderr
    assert "line 3: " in result.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_wrong_words_are_answered_before_a_model_is_loaded(run: Run) -> None:
    for arguments, said in (
        (("--method", "marginalize"), "Did you mean 'marginalise'"),
        (("--method", "mask", "--set", "candidates=3"), "candidates is an option of marginalise, not of mask"),
        (("--label", "x"), "is of a classifier"),
        (("--classifier", "no such folder"), "there is no folder"),
    ):
        result = run("explain", TEXT, *arguments)
        assert result.exit_code == 2
        assert said in result.stderr
