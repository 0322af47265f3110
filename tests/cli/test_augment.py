"""`besag augment`: copies, rows that go along, and runs that go on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, table

from besag.samplers.editing.augment import Augmenting
from besag.samplers.editing.augmented import Augmented

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


SENTENCES = [FILM, "It was a great day.", "", "She lives in the old house.", FILM]


def test_skip_gives_the_rows_of_a_whole_run(run: Run, tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("\n".join(SENTENCES[:2]) + "\n", encoding="utf-8")
    two.write_text("\n".join(SENTENCES[2:]) + "\n", encoding="utf-8")
    options = [one, two, "--copies", 2, "--similarity", 0.3, "--seed", 4]

    def rows(*more: object) -> list[tuple[str, ...]]:
        found = table(run("augment", *options, *more).stdout)
        return [tuple(row[name] for name in ("row", "copy", "original", "text", "changed", "status")) for row in found]

    whole = rows()
    assert [row[0] for row in whole] == [str(number) for number in range(1, 6) for _ in range(2)]
    for skip in (1, 3, 4):
        assert rows("--skip", skip) == whole[2 * skip :]
    assert rows("--skip", 1, "--limit", 2) == whole[2:6]
    assert [row[3] for row in whole[:2]] != [row[3] for row in whole[8:]]  # the same text, in another row


def test_an_interrupted_run_goes_on_where_it_says(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    options = [file, "--copies", 3, "--similarity", 0.3]
    whole = [(row["row"], row["copy"], row["text"]) for row in table(run("augment", *options).stdout)]
    plain = Augmenting.run

    def stopped(self: Augmenting, *given: Any, **more: Any) -> Iterator[Augmented]:
        yield from islice(plain(self, *given, **more), 8)  # two of the third text's copies
        raise KeyboardInterrupt

    monkeypatch.setattr(Augmenting, "run", stopped)
    begun = run("augment", *options)
    assert begun.exit_code == 130
    assert "interrupted after 2 texts; go on with --skip 2" in begun.stderr
    monkeypatch.setattr(Augmenting, "run", plain)
    rest = run("augment", *options, "--skip", 2)
    found = [(row["row"], row["copy"], row["text"]) for row in [*table(begun.stdout), *table(rest.stdout)]]
    assert found == whole


def test_a_text_that_cannot_be_changed_says_so(run: Run) -> None:
    result = run("augment", FILM, "--keep", FILM)
    assert result.exit_code == 3
    [row] = table(result.stdout)
    assert row["text"] == FILM
    assert row["status"] != "ok"
    assert "could not be changed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([FILM, "--share", "0"], "--share 0.0"),
        ([FILM, "-t", "0"], "--temperature 0.0: give a number above 0"),
        (["nowhere.txt"], "nowhere.txt"),
    ],
)
def test_errors_are_one_line_and_leave_nothing_behind(
    run: Run, tmp_path: Path, arguments: list[str], told: str
) -> None:
    output = tmp_path / "out.tsv"
    result = run("augment", *arguments, "-o", output)
    assert result.exit_code == 2, result.stdout
    assert told in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not output.exists()
