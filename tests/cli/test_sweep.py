"""`besag sweep` is Python's `sweep`, with a table and a curve on stdout; what is wrong is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

import besag
from besag.sweeps import Sweep


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What the door was asked for; three runs stand in for what it does."""
    found: dict[str, Any] = {"wrong": {}}

    def stands_in(recipes: Any, vary: Any, **more: Any) -> Sweep:
        found.update(recipes=recipes, vary=vary, **more)
        rows = [{"run": f"size={size}", "status": "ok", "model.config.size": size, "parameters": size,
                 "heldout_loss": 8 * size**-0.5} for size in (1, 4, 16)]  # fmt: skip
        return Sweep(tmp_path, ("model.config.size",), tuple(rows), found["wrong"])

    monkeypatch.setattr(besag, "sweep", stands_in, raising=False)
    return found


def test_the_words_of_the_command_are_those_of_python(run: Run, asked: dict[str, Any], tmp_path: Path) -> None:
    words = ["--vary", "masking.rate=0.15,0.3", "--vary", "run.seed=1,2", "--jobs", 2, "--judge", "blimp", "--limit", 5]
    result = run("sweep", "a.toml", "b.toml", "-o", tmp_path / "out", *words, "--curve", "parameters")
    assert result.exit_code == 0, result.stderr
    assert asked["vary"] == {"masking.rate": [0.15, 0.3], "run.seed": [1, 2]}
    assert (asked["recipes"], asked["jobs"], asked["judge"], asked["limit"]) == (["a.toml", "b.toml"], 2, ["blimp"], 5)
    assert "heldout_loss over parameters: falls as x^−0.5 (0.5 to 0.5, 3 points" in result.stdout
    asked["wrong"] = {"size=1": "no text"}
    assert run("sweep", "a.toml", "-o", tmp_path / "out").exit_code == 3


def test_a_picture(run: Run, asked: dict[str, Any], tmp_path: Path) -> None:
    assert run("sweep", "a.toml", "-o", tmp_path / "out", "--plot", tmp_path / "curve.svg").exit_code == 0
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    again = run("sweep", "a.toml", "-o", tmp_path / "out", "--plot", tmp_path / "curve.svg")
    assert again.exit_code == 2
    assert "curve.svg" in again.stderr


def test_what_is_wrong_is_one_line(run: Run, tmp_path: Path) -> None:
    for words, why in (
        (["nowhere.toml"], "nowhere.toml"),
        (["nowhere.toml", "--vary", "masking.rate"], "--vary 'masking.rate'"),
        (["nowhere.toml", "--plot", tmp_path / "curve.txt"], "curve.txt"),
        (["a.toml", "--curve", "paramters"], "Did you mean 'parameters'"),
        (["a.toml", "--of", "loss"], "'loss' is not a column"),
        (["a.toml", "--curve", "masking.rate", "--of", "blimp"], "'masking.rate' is not a column"),
    ):
        result = run("sweep", *words, "-o", tmp_path / "out")
        assert result.exit_code == 2
        assert why in result.stderr
        assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_columns_that_the_table_will_have_are_no_mistake(run: Run, asked: dict[str, Any], tmp_path: Path) -> None:
    """The values that vary and the suites that judge are columns too. The stand-in has neither: it ran, and says so."""
    words = ["--vary", "masking.rate=0.15,0.3", "--judge", "blimp", "--curve", "masking.rate", "--of", "blimp"]
    result = run("sweep", "a.toml", "-o", tmp_path / "out", *words)
    assert asked["judge"] == ["blimp"]
    assert "'masking.rate' is not a column" in result.stderr  # of the stand-in's table
