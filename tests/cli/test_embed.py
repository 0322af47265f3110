"""`besag embed` and `besag probe`: vectors of texts, and what can be read from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, put, table

import besag


def test_vectors_are_those_of_python(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path / "a.tsv", "id\ttext\n7\tThe cat sleeps.\n8\tThe law passed.\n")
    result = run("embed", file, "--format", "jsonl", "--layer", 2)
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    vectors = besag.load().embed(["The cat sleeps.", "The law passed."], 2)
    assert rows[0]["vector"] == pytest.approx(vectors[0].tolist(), abs=1e-4)
    assert [row["input"]["id"] for row in rows] == ["7", "8"]
    lines = table(run("embed", "The cat sleeps.").stdout)
    assert len(lines[0]) == 1 + vectors.shape[1]


def test_a_table_is_not_named_as_an_array(run: Run, tmp_path: Path) -> None:
    result = run("embed", "The cat sleeps.", "--output", tmp_path / "a.npy")
    assert result.exit_code == 2
    assert "numpy.save" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_label_is_probed(run: Run, tmp_path: Path) -> None:
    said = [("The cat sleeps on the mat.", "cat"), ("The law passed in Congress.", "law")] * 6
    file = put(tmp_path / "a.tsv", "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in said))
    result = run("probe", file, "--folds", 3)
    assert result.exit_code == 0, result.stderr
    assert [(line["label"], float(line["found"])) for line in table(result.stdout)] == [("cat", 1.0), ("law", 1.0)]
    assert "accuracy 100.0% in 3 folds" in result.stderr
    wrong = run("probe", file, "--label", "labels")
    assert wrong.exit_code == 2
    assert "Did you mean 'label'" in wrong.stderr
    alone = run("probe", put(tmp_path / "a.txt", "The cat sleeps.\n"))
    assert alone.exit_code == 2
    assert "is a text alone, and a column 'label' is asked for" in alone.stderr
