"""`besag examples`: what the pages use, listed or copied."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run


def test_examples_and_recipes_are_listed_and_copied(run: Run, tmp_path: Path) -> None:
    listed = run("examples").stdout.split()
    assert {"examples/nbest.jsonl", "recipes/small-en.toml"} <= set(listed)
    assert run("examples", tmp_path / "new").exit_code == 0
    copied = {path.relative_to(tmp_path / "new").as_posix() for path in (tmp_path / "new").rglob("*") if path.is_file()}
    assert copied == set(listed)


def test_what_is_there_is_not_written_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    result = run("examples", tmp_path)
    assert result.exit_code == 2
    assert "recipes' exists already: name another folder" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["recipes"]
