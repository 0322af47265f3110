"""`besag diagnose`: one text, three diagnostics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, table

import besag
from besag.diagnostics.dependence import dependence
from besag.diagnostics.rectangle import rectangles

TEXT = "The man is here."
QUICK = ("--minors", 8, "--candidates", 5)


def test_a_pair_is_diagnosed_as_python_does(run: Run) -> None:
    result = run("diagnose", TEXT, "--position", "man", "--position", "is", "--max-distance", 1, "--top", 2, *QUICK)
    assert result.exit_code == 0, result.stderr
    lines = table(result.stdout)
    values = {(line["diagnostic"], line["measure"]): float(line["value"]) for line in lines}
    engine = besag.load().engine
    tested = rectangles(engine, TEXT, ("man", "is"), minors=8)
    assert values["rectangles", "mean |D|"] == pytest.approx(tested.mean, abs=1e-3)
    assert values["rectangles", "correlation"] == pytest.approx(tested.correlation, abs=1e-3)
    assert values["compatibility", "Arnold-Press"] > 0
    assert values["compatibility", "A-KL of ag"] < values["compatibility", "A-KL of mlm"]
    found = dependence(engine, TEXT, candidates=5, max_distance=1)
    strongest = [line for line in lines if line["diagnostic"] == "dependence"]
    assert [float(line["value"]) for line in strongest] == pytest.approx(
        [pair.mutual_information for pair in found.top(2)], abs=1e-3
    )
    assert f"the map: {found.pairs} pairs of places, at most" in result.stderr


def test_without_places_neighbours_are_tested(run: Run) -> None:
    result = run("diagnose", "The cats sleep.", "--no-map", *QUICK)
    assert result.exit_code == 0, result.stderr
    lines = table(result.stdout)
    assert {line["a"] for line in lines} == {"neighbours"}
    assert [line["measure"] for line in lines][-1] == "Arnold-Press"


def test_json_holds_everything_and_a_picture_is_saved(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "casino.png"
    result = run(
        "diagnose", "The cats sleep.", "--position", 2, "--position", 3, "--format", "jsonl", "--plot", picture,
        "--max-distance", 1, *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    tested, scored, found = [json.loads(line) for line in result.stdout.splitlines()]
    assert (tested["diagnostic"], tested["minors"], tested["positions"]) == ("rectangles", 8, [[2, 3]])
    assert scored["joints"]["ag"]["all_forward"] < scored["joints"]["mlm"]["all_forward"]
    assert len(found["matrix"]) == len(found["tokens"])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_wrong_places_are_answered(run: Run) -> None:
    result = run("diagnose", TEXT, "--position", "mann", "--position", "is", *QUICK)
    assert result.exit_code == 2
    assert "Did you mean 'man'?" in result.stderr
    alone = run("diagnose", TEXT, "--position", "man", *QUICK)
    assert alone.exit_code == 2
    assert "two places, and one was given" in alone.stderr
    long = run("diagnose", " ".join([TEXT] * 60), "--position", 1, "--position", 2, *QUICK)
    assert long.exit_code == 2
    assert "--max-distance" in long.stderr
