"""`besag match`: two columns of a file, and partners."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Run, put, table

import besag

ROWS = "id\tfirst\tsecond\tgroup\n1\tThe cats\tsleep now.\tx\n2\tThe cat\tsleeps now.\tx\n3\tA dog\tbarks.\ty\n"


def test_partners_are_those_of_python(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path / "a.tsv", ROWS)
    result = run("match", file, "--group", "group")
    assert result.exit_code == 0, result.stderr
    lines = table(result.stdout)
    found = besag.load().match(
        ["The cats", "The cat", "A dog"], ["sleep now.", "sleeps now.", "barks."], ["x", "x", "y"]
    )
    assert [line["second"] for line in lines] == [one.second for one in found.pairs]
    assert [float(line["prob"]) for line in lines] == pytest.approx([one.prob for one in found.pairs], abs=1e-3)
    assert "stood side by side as given, by chance 66.67%" in result.stderr


def test_a_column_that_is_not_there_is_answered(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path / "a.tsv", ROWS)
    result = run("match", file, "--first", "frist")
    assert result.exit_code == 2
    assert "Did you mean 'first'" in result.stderr
    empty = put(tmp_path / "b.tsv", "first\tsecond\nThe cat\t\n")
    result = run("match", empty)
    assert result.exit_code == 2
    assert "second is ''" in result.stderr
