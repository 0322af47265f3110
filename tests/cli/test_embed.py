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
    assert [*lines[0]] == ["text_id", *(f"v{at}" for at in range(1, vectors.shape[1] + 1)), "status"]
    assert lines[0]["status"] == "ok"


BAD = {"": "empty", "The cat sleeps. " * 500: "long", "half \\ud800": "undecodable"}


def test_a_text_without_a_vector_has_a_status_and_the_rest_goes_on(run: Run, tmp_path: Path) -> None:
    texts = ["", "The cat sleeps.", *BAD, "The law passed."]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"text": text}).replace("\\\\", "\\") + "\n" for text in texts))
    result = run("embed", file, "--format", "jsonl")
    assert result.exit_code == 3
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["status"] for row in rows] == ["empty", "ok", *BAD.values(), "ok"]
    assert [row["vector"] is None for row in rows] == [True, False, True, True, True, False]
    expected = besag.load().embed(["The cat sleeps.", "The law passed."])
    assert rows[1]["vector"] == pytest.approx(expected[0].tolist(), abs=1e-4)
    assert rows[5]["vector"] == pytest.approx(expected[1].tolist(), abs=1e-4)
    lines = table(run("embed", file, "--format", "tsv").stdout)
    assert [line["status"] for line in lines] == [row["status"] for row in rows]
    assert [line["v1"] == "" for line in lines] == [row["vector"] is None for row in rows]
    kept = tmp_path / "vectors.parquet"
    assert run("embed", file, "-o", kept).exit_code == 3
    frame = pytest.importorskip("pandas").read_parquet(kept)
    assert frame["v1"].isna().tolist() == [row["vector"] is None for row in rows]


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
    lines = file.read_text().splitlines()
    holes = put(tmp_path / "holes.tsv", "\n".join([*lines[:3], "\tcat", *lines[3:], "\tlaw", ""]))
    result = run("probe", holes, "--folds", 3)
    assert result.exit_code == 3
    assert [(line["label"], line["examples"]) for line in table(result.stdout)] == [("cat", "6"), ("law", "6")]
    assert "holes.tsv, line 4 is left out: the text is empty" in result.stderr
    nothing = run("probe", put(tmp_path / "nothing.tsv", "text\tlabel\n\ta\n\tb\n"))
    assert nothing.exit_code == 2
    assert "2 rows" in nothing.stderr
    wrong = run("probe", file, "--label", "labels")
    assert wrong.exit_code == 2
    assert "Did you mean 'label'" in wrong.stderr
    alone = run("probe", put(tmp_path / "a.txt", "The cat sleeps.\n"))
    assert alone.exit_code == 2
    assert "is a text alone, and a column 'label' is asked for" in alone.stderr
