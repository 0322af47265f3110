"""`besag edit`: what was asked changes, and little else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, table

from besag.results.status import Status
from besag.samplers.editing.edit import Edited

FILM = "The film was long and rather dull."


def test_an_edit_changes_what_was_asked_and_little_else(run: Run) -> None:
    result = run("edit", "The boy lost his keys.", "boy=girl", "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["text"].startswith("The girl ")
    assert len(found["flips"]) <= 2
    assert found["status"] == "ok"
    assert "asked: 'boy' → 'girl'" in result.stderr


@pytest.mark.parametrize("shape", ["tsv", "jsonl"])
def test_a_text_that_reads_as_other_tokens_is_told(run: Run, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Edited, "status", Status.MISREAD)
    result = run("edit", "The boy lost his keys.", "boy=girl", "--format", shape)
    assert result.exit_code == 3
    [row] = [json.loads(result.stdout)] if shape == "jsonl" else table(result.stdout)
    assert row["status"] == "misread"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([FILM, "film"], "'film': write OLD=NEW"),
        ([FILM, "dragon=cat"], "dragon"),
        ([FILM, "film=book", "film=play"], "'film=book' and 'film=play' both say what becomes of 'film'"),
        ([FILM, "film=", "long=short", "film=play"], "'film=' and 'film=play' both say what becomes of 'film'"),
        ([FILM, "film=book", "--strength", "2"], "--strength 2.0"),
    ],
)
def test_errors_are_one_line_and_leave_nothing_behind(
    run: Run, tmp_path: Path, arguments: list[str], told: str
) -> None:
    output = tmp_path / "out.tsv"
    result = run("edit", *arguments, "-o", output)
    assert result.exit_code == 2, result.stdout
    assert told in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not output.exists()
