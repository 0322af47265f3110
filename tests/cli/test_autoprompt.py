"""`besag autoprompt` on a tiny network: rounds on the screen, answers in a file, wrong input in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.networks import tiny, vocabulary

ROWS = [{"text": text, "label": label} for text, label in [("the cat", "on"), ("the man", "mat"), ("cat", "on")] * 4]
SEARCH = ["--template", "{text} [T] [MASK]", "--rounds", 1, "--candidates", 3]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    tiny("bert").save_pretrained(tmp_path / "bert")
    vocabulary("bert").tokenizer.save_pretrained(tmp_path / "bert")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return file


def test_rounds_and_answers(run: Run, rows: Path, tmp_path: Path) -> None:
    model = ["-m", tmp_path / "bert"]
    shown = run("autoprompt", rows, *SEARCH, *model, "--format", "table")
    assert shown.exit_code == 0, shown.stderr
    assert "held-out accuracy" in shown.stdout
    labels = ["--label", "on=on,the", "--label", "mat=mat"]
    answered = run("autoprompt", rows, *SEARCH, *model, *labels, "--answer", rows, "-o", tmp_path / "answers.tsv")
    assert answered.exit_code == 0, answered.stderr
    head, *lines = (tmp_path / "answers.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == ["text", "label", "answer", "share"]
    assert [line.split("\t")[0] for line in lines] == [row["text"] for row in ROWS]
    assert {line.split("\t")[2] for line in lines} <= {"on", "mat"}


def test_what_is_wrong_is_one_line(run: Run, rows: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("the cat\n")
    for words, why in (
        ([rows, "--label", "on"], "--label 'on'"),
        ([plain], "has no columns"),
        ([tmp_path / "none.jsonl"], "none.jsonl"),
    ):
        result = run("autoprompt", *words, *SEARCH, "-m", tmp_path / "bert")
        assert result.exit_code == 2
        assert why in result.stderr
