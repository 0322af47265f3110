"""`besag train head` and `besag predict`: from a recipe to labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, put, table
from tests.heads import tasks


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("head")
    tasks.start(folder / "masked")
    tasks.texts(folder / "train.tsv", 120)
    (folder / "recipe.toml").write_text(
        '[task]\ntrain = "train.tsv"\nmax_length = 32\n[model]\nstart = "masked"\n'
        "[tuning]\nepochs = 4\nbatch = 16\nlr = 3e-3\nhead_lr = 3e-3\n"
    )
    return folder


def test_a_recipe_becomes_a_head_that_labels(run: Run, head: Path, tmp_path: Path) -> None:
    result = run("train", "head", head / "recipe.toml", "--set", "tuning.epochs=5")
    assert result.exit_code == 0, result.stderr
    assert "accuracy" in result.stdout
    assert "reading 5 of 5" in result.stderr
    file = put(tmp_path / "a.tsv", "id\ttext\n7\tthe cat on a mat\n8\t\n9\tthe dogs\n")
    result = run("predict", file, "--head", head / "head", "--all")
    assert result.exit_code == 3  # one is empty
    lines = table(result.stdout)
    assert [line["label"] for line in lines] == ["cat", "", "dogs"]
    assert [line["id"] for line in lines] == ["7", "8", "9"]
    assert [line["status"] for line in lines] == ["ok", "empty", "ok"]
    assert float(lines[0]["p(cat)"]) + float(lines[0]["p(dogs)"]) == pytest.approx(1, abs=1e-3)
    found = run("predict", "the cat", "--head", head / "head", "--format", "jsonl")
    assert json.loads(found.stdout)["label"] == "cat"
    explained = run("explain", "the cat on a mat", "--classifier", head / "head", "--model", head / "masked")
    assert explained.exit_code == 0, explained.stderr
    rows = table(explained.stdout)
    assert max(rows, key=lambda row: float(row["importance"]))["token"] == "cat"


def test_what_is_no_head_or_no_recipe_is_answered(run: Run, head: Path) -> None:
    result = run("predict", "a text", "--head", head / "masked")
    assert result.exit_code == 2
    assert "which gives no labels" in result.stderr
    result = run("train", "head", head / "recipe.toml", "--set", "tuning.epoch=5")
    assert result.exit_code == 2
    assert "Did you mean 'epochs'" in result.stderr
