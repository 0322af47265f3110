"""`besag lab`: listed, run, and one page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from besag.lab.experiment import EXPERIMENTS, Experiment, Finding, experiment


def test_all_experiments_are_listed(run: Run) -> None:
    listed = run("lab", "list").stdout
    experiment("stutter")  # fills the registry
    assert all(name in listed for name in EXPERIMENTS)


def test_an_experiment_is_shown_with_what_it_showed(run: Run) -> None:
    result = run("lab", "run", "stutter", "--format", "table")
    assert result.exit_code == 0
    assert "was walking walking" in result.stdout
    assert "5 of 5 claims hold" in " ".join(result.stdout.split())


def test_it_is_written_as_rows_and_whole(run: Run, tmp_path: Path) -> None:
    rows = run("lab", "run", "stutter", "--format", "tsv").stdout.splitlines()
    assert rows[0].split("\t")[:3] == ["experiment", "table", "sentence"]
    assert len(rows) == 1 + 4 + 5
    target = tmp_path / "found.jsonl"
    result = run("lab", "run", "stutter", "star_order", "-o", str(target))
    assert result.exit_code == 0
    assert "stutter: holds" in result.stderr
    first, second = map(json.loads, target.read_text().splitlines())
    assert first["name"] == "stutter"
    assert first["holds"]
    assert len(second["arrays"]["passes"]) == 6
    assert run("lab", "run", "stutter", "-o", str(target)).exit_code == 2


def test_a_picture_is_saved_and_options_are_set(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "star.svg"
    result = run("lab", "run", "star_order", "--set", "places=4", "--plot", str(picture), "--format", "jsonl")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["command"] == "besag lab run star_order --set places=4"
    assert picture.read_text().lstrip().startswith("<?xml")
    assert "run one" in run("lab", "run", "stutter", "passes", "--plot", str(picture)).stderr


def test_a_page_is_one_file(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "lab.html"
    result = run("lab", "report", "stutter", "star_order", "-o", str(target))
    assert result.exit_code == 0
    assert "2 of 2 experiments" in result.stderr
    text = target.read_text()
    assert text.count("<svg") == 4
    assert "besag lab run star_order" in text
    assert "exists already" in run("lab", "report", "stutter", "-o", str(target)).stderr
    said = "1 of 1 experiments hold what they claim", "stutter: holds"
    plain = run("lab", "report", "stutter", "-o", str(target), "--force").stderr
    quiet = run("lab", "report", "stutter", "-o", str(target), "--force", "--quiet").stderr
    assert [line in plain for line in said] == [True, True]
    assert [line in quiet for line in said] == [True, False]


def test_a_claim_that_does_not_hold_has_an_exit_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = lambda self, full: Finding("so", {"no": False}, {"numbers": [{"x": 1}]})  # noqa: E731
    experiment("stutter")
    monkeypatch.setattr(EXPERIMENTS["stutter"], "measure", wrong)
    assert issubclass(EXPERIMENTS["stutter"], Experiment)
    result = run("lab", "run", "stutter")
    assert result.exit_code == 3
    assert "DOES NOT HOLD" in result.stderr


def test_what_is_wrong_is_refused_at_once(run: Run) -> None:
    assert "Did you mean 'stutter'?" in run("lab", "run", "stuter").stderr
    assert "has no option 'size'" in run("lab", "run", "stutter", "--set", "size=3").stderr
    assert "--seed -1: give a whole number" in run("lab", "run", "stutter", "--seed", "-1").stderr


def test_ten_seeds_make_a_table(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = lambda self, full: Finding("so", {"even": self.seed % 2 == 0, "so": True}, {"numbers": [{"x": 1}]})  # noqa: E731
    experiment("stutter")
    monkeypatch.setattr(EXPERIMENTS["stutter"], "measure", odd)
    target = tmp_path / "lab.html"
    result = run("lab", "report", "stutter", "--seeds", "3", "--seed", "4", "-o", str(target))
    assert result.exit_code == 3
    assert "2 of 3 experiments" in result.stderr
    row = result.stdout.splitlines()[-1]
    assert row.split()[:2] == ["stutter", "exact"]
    assert (row.count("holds"), row.count("1 of 2 DO NOT HOLD")) == (2, 1)
    assert target.read_text().count("1 of 2 DO NOT HOLD") == 1
    assert "--seeds" in run("lab", "report", "stutter", "--seeds", "0", "-o", str(target), "--force").stderr
