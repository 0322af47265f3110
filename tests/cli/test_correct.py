"""`besag correct`: rows that go along, spans with their odds, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run, table


def test_columns_go_along_and_nothing_sure_enough_is_left(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "texts.tsv"
    file.write_text("text\tlabel\nThe cat sleeps.\tgood\n\tnone\n", encoding="utf-8")
    result = run("correct", file, "--margin", 1000, "--spans")
    assert result.exit_code == 3, result.stderr
    first, second = table(result.stdout)
    assert (first["text"], first["changed"], first["spans"], first["label"]) == ("The cat sleeps.", "", "", "good")
    assert second["status"] == "empty"
    assert "0 of 2 texts changed" in result.stderr
    assert "has not learnt to correct: --model names one that has" in result.stderr
    assert "1 text could not be read" in result.stderr


def test_spans_say_where_and_by_how_much(run: Run) -> None:
    text = "Teh cat slepe on teh mat."
    result = run("correct", "--spans", stdin=text + "\n")
    assert result.exit_code == 0, result.stderr
    [row] = table(result.stdout)
    assert row["original"] == text
    spans = [part.split(":") for part in row["spans"].split()]
    assert len(spans) == len([part for part in row["changed"].split(", ") if part])
    assert all(float(odds) > 0 for _, odds in spans)


def test_a_margin_below_zero_is_refused(run: Run) -> None:
    result = run("correct", "The cat.", "--margin", -1)
    assert result.exit_code == 2
    assert "--margin -1.0: a number of nats, 0 or more" in result.stderr
