"""`besag answer` on a tiny network: labels and written answers in files, figures on stderr, wrong input in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.networks import tiny, vocabulary

ROWS = [{"text": text, "label": label} for text, label in [("the cat", "on"), ("the man", "mat"), ("cat", "on")]]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    tiny("bert").save_pretrained(tmp_path / "bert")
    vocabulary("bert").tokenizer.save_pretrained(tmp_path / "bert")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return file


def test_labels_and_written_answers(run: Run, rows: Path, tmp_path: Path) -> None:
    model = ["--template", "{text} [MASK] .", "-m", tmp_path / "bert"]
    labels = ["--label", "on=on,the mat", "--label", "mat=mat"]
    chosen = run("answer", rows, *model, *labels, "--examples", rows, "--shots", 2, "-o", tmp_path / "a.tsv")
    assert chosen.exit_code == 0, chosen.stderr
    head, *lines = (tmp_path / "a.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == ["text", "label", "answer", "share"]
    assert {line.split("\t")[2] for line in lines} <= {"on", "mat"}
    assert "right" in chosen.stderr
    assert "2 shots" in chosen.stderr
    written = run("answer", rows, *model, "-k", "ordered", "--tokens", 2, "--limit", 2, "--format", "jsonl")
    assert written.exit_code == 0, written.stderr
    found = [json.loads(line) for line in written.stdout.splitlines()]
    assert [one["row"] for one in found] == ROWS[:2]
    assert [one["prompt"] for one in found] == ["the cat [MASK] .", "the man [MASK] ."]


def test_what_is_wrong_is_one_line(run: Run, rows: Path, tmp_path: Path) -> None:
    for words, why in (
        (["--label", "on"], "--label 'on'"),
        (["--shots", 2], "--examples"),
        (["--kernel", "ordred"], "Did you mean 'ordered'"),
        (["--label", "a=cat", "--label", "b=mat", "--set", "ordr=random"], "ordr"),
    ):
        result = run("answer", rows, "--template", "{text} [MASK]", *words, "-m", tmp_path / "bert")
        assert result.exit_code == 2
        assert why in result.stderr

    (tmp_path / "empty.tsv").touch()
    result = run(
        "answer", tmp_path / "empty.tsv", "--template", "{text} [MASK]", "--label", "a=cat", "--label", "b=mat"
    )
    assert result.exit_code == 2
    assert "empty.tsv has no rows" in result.stderr
