"""The table of a sweep, from folders written by hand."""

import json
import math

import numpy as np
import pytest
from safetensors.numpy import save_file

from besag.errors import BesagError
from besag.sweeps.cells import cells
from besag.sweeps.table import parameters, table

RECIPE = {"data": {"train": ["text.txt"]}, "schedule": {"steps": 2}}


def finished(folder, cell, size, loss):
    """A run that ended with this loss and a network of so many weights."""
    run = folder / "runs" / cell.name
    (run / "model").mkdir(parents=True)
    save_file(
        {"a": np.zeros((size - 3, 1), np.float32), "b": np.zeros(3, np.float32)}, run / "model" / "model.safetensors"
    )
    lines = [{"step": 1, "tokens": 50, "seconds": 2.0, "loss": 9.0}, {"step": 2, "tokens": 100, "seconds": 4.0}]
    lines.append({"step": 2, "tokens": 100, "heldout_loss": loss})
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def found(tmp_path):
    plan = cells([RECIPE], {"model.config.hidden_size": [16, 32, 64], "run.seed": [1, 2]}, tmp_path / "runs")
    for cell in plan[:-1]:
        size = cell.values["model.config.hidden_size"] * 10
        finished(tmp_path, cell, size, 3 * size**-0.5 * (1.1 if cell.values["run.seed"] == 1 else 1 / 1.1))
    return table(tmp_path, plan, (), {plan[-1].name: "it broke"})


def test_rows_hold_what_the_runs_say(found):
    first = found.rows[0]
    assert first["run"] == "hidden_size=16,seed=1"
    assert (first["parameters"], first["tokens"], first["seconds"], first["flops"]) == (160, 100, 4.0, 6 * 160 * 100)
    assert found.rows[-1] == {
        "run": "hidden_size=64,seed=2",
        "status": "failed",
        "model.config.hidden_size": 64,
        "run.seed": 2,
    }
    assert found.status == "partly"
    assert "it broke" in " ".join(found.facts)
    assert parameters(found.folder / "runs" / first["run"] / "model") == 160


def test_means_are_over_seeds_with_their_standard_deviation(found):
    small, _, large = found.means
    pair = [row["heldout_loss"] for row in found.rows[:2]]
    assert small["heldout_loss"] == pytest.approx(sum(pair) / 2)
    assert small["heldout_loss ±"] == pytest.approx(abs(pair[0] - pair[1]) / math.sqrt(2))
    assert (small["runs"], large["runs"]) == (2, 1)
    assert math.isnan(large["heldout_loss ±"])
    assert "±" in str(found)


def test_the_curve_is_a_power_law_over_all_runs(found):
    law = found.curve()
    assert law.points == 5
    assert law.low < 0.5 < law.high
    ax = found.plot()
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_ylabel()) == ("log", "parameters", "heldout loss")
    assert len(ax.lines) == 2
    with pytest.raises(BesagError, match="not a column"):
        found.curve("sise")


def test_a_key_that_changes_the_question_is_told_of(tmp_path):
    plan = cells([RECIPE], {"masking.rate": [0.1, 0.2]}, tmp_path / "runs")
    for cell in plan:
        finished(tmp_path, cell, 10, 2.0)
    found = table(tmp_path, plan, (), {})
    assert any("masking.rate changes what heldout_loss is about" in fact for fact in found.facts)
    found.write()
    head, *rows = (tmp_path / "table.tsv").read_text().splitlines()
    assert head.split("\t")[:3] == ["run", "status", "masking.rate"]
    assert len(rows) == 2
    with pytest.raises(BesagError, match="1 different"):
        found.curve()


def test_an_evaluation_that_was_killed_before_its_end_has_no_figures_yet(tmp_path):
    plan = cells([RECIPE], {"run.seed": [1]}, tmp_path / "runs")
    finished(tmp_path, plan[0], 10, 2.0)
    judged = tmp_path / "judged" / plan[0].name
    judged.mkdir(parents=True)
    for name in ("run.json", "items.jsonl.progress"):
        (judged / name).write_text("{}")
    [row] = table(tmp_path, plan, ["blimp"], {}).rows
    assert row["status"] == "ok"
    assert "blimp" not in row
