"""`besag distil-translations` is Python's `distil_translations`; what is wrong is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

import besag
from besag.distillation import Distilled


def test_it_hands_over_what_was_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []

    def stands_in(*given: Any, **options: Any) -> Distilled:
        said.append((given, options))
        return Distilled(tmp_path / "train.source", tmp_path / "train.target", 10, 1, 4)

    monkeypatch.setattr(besag, "distil_translations", stands_in, raising=False)
    result = run("distil-translations", "r.toml", "-o", "out", "--parts", 3, "--beam", 2, "--set", "schedule.steps=5")
    assert result.exit_code == 0, result.stderr
    assert said == [
        (
            ("r.toml", "out", ["schedule.steps=5"]),
            {"parts": 3, "beam": 2, "alpha": 1.0, "part": None, "device": None, "quiet": False},
        )
    ]
    assert "10 pairs" in result.stderr
    assert "1 sources had no translation" in result.stderr


def test_a_recipe_without_pairs_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('[data]\ntrain = ["text.txt"]\n')
    result = run("distil-translations", tmp_path / "r.toml", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert not (tmp_path / "out").exists()
