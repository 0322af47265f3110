"""`besag augment` and `besag edit`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, table

FILM = "The film was long and rather dull."


def test_copies_differ_and_labels_go_along(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "reviews.tsv"
    file.write_text(f"text\tlabel\n{FILM}\tbad\nIt was a great day.\tgood\n", encoding="utf-8")
    result = run("augment", file, "--copies", 2, "--keep", "film", "--similarity", 0.5, "--seed", 1)
    assert result.exit_code == 0, result.stderr
    rows = table(result.stdout)
    assert [(row["row"], row["copy"], row["label"]) for row in rows] == [
        ("1", "0", "bad"), ("1", "1", "bad"), ("2", "0", "good"), ("2", "1", "good"),
    ]  # fmt: skip
    assert all(row["text"] != row["original"] and row["changed"] for row in rows)
    assert all("film" in row["text"] for row in rows[:2])
    assert (
        run("augment", file, "--copies", 2, "--keep", "film", "--similarity", 0.5, "--seed", 1).stdout == result.stdout
    )


def test_a_text_that_cannot_be_changed_says_so(run: Run) -> None:
    result = run("augment", FILM, "--keep", FILM)
    assert result.exit_code == 3
    [row] = table(result.stdout)
    assert row["text"] == FILM
    assert row["status"] != "ok"
    assert "could not be changed" in result.stderr


def test_an_edit_changes_what_was_asked_and_little_else(run: Run) -> None:
    result = run("edit", "The boy lost his keys.", "boy=girl", "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["text"].startswith("The girl ")
    assert len(found["flips"]) <= 2
    assert "asked: 'boy' → 'girl'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["augment", FILM, "--share", "0"], "share=0.0"),
        (["augment", FILM, "-t", "0"], "temperature=0.0: give a number above 0"),
        (["augment", "nowhere.txt"], "nowhere.txt"),
        (["edit", FILM, "film"], "'film': write OLD=NEW"),
        (["edit", FILM, "dragon=cat"], "dragon"),
        (["edit", FILM, "film=book", "--strength", "2"], "strength=2.0"),
    ],
)
def test_errors_are_one_line_and_leave_nothing_behind(
    run: Run, tmp_path: Path, arguments: list[str], told: str
) -> None:
    output = tmp_path / "out.tsv"
    result = run(*arguments, "-o", output)
    assert result.exit_code == 2, result.stdout
    assert told in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not output.exists()
