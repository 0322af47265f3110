"""`besag.train` is the command: the same weights, the same numbers, the same card, and Ctrl-C without a loss."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.training.a_run import small
from typer.testing import CliRunner

import besag
from besag.cli import app
from besag.errors import BesagError
from besag.training.recipe import recipe_of, to_toml
from besag.training.recipe.values import as_table
from besag.training.run import logs

CHANGES = {"evaluation.sentences": 10, "schedule.steps": 4, "masking.rate": 0.4}
ALONE = """
import sys, besag
assert "besag.family" not in sys.modules
print(besag.load(sys.argv[1], device="cpu").score("The dog sees the cat.").total)
"""
SETS = ["evaluation.sentences=10", "schedule.steps=4", "masking.rate=0.4"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    path = folder / "recipe.toml"
    path.write_text(to_toml(small(folder / "run"), beside=folder), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(recipe: Path) -> besag.TrainingResult:
    return besag.train(recipe, CHANGES, output=recipe.parent / "python", quiet=True)


def weights(folder: Path) -> bytes:
    return (folder / "model" / "model.safetensors").read_bytes()


def test_the_command_trains_the_same(recipe: Path, trained: besag.TrainingResult) -> None:
    folder = recipe.parent / "command"
    options = [word for change in SETS for word in ("--set", change)]
    said = CliRunner().invoke(app, ["train", str(recipe), *options, "--output", str(folder), "--quiet"])
    assert said.exit_code == 0, said.stderr
    printed = {line.split()[0] for line in said.stdout.splitlines()}
    assert printed == set(trained.metrics)
    assert {"heldout_loss", "pseudo_perplexity", "loss"} <= printed  # evaluation included
    assert weights(folder) == weights(trained.folder)
    cards = [(one / "model" / "README.md").read_text(encoding="utf-8") for one in (folder, trained.folder)]
    assert all("command: `besag train recipe.toml --set evaluation.sentences=10" in card for card in cards)


def test_a_network_of_besags_own_family_learns_and_is_found_again(recipe: Path) -> None:
    config = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config["mix_every"] = 1
    model = {f"model.config.{name}": value for name, value in config.items()}
    trained = besag.train(
        recipe,
        {"model.config": {}, **model, "model.family": "besag", "optimizer.name": "muon", "schedule.steps": 25},
        output=recipe.parent / "own",
        quiet=True,
    )
    losses = [row["loss"] for row in logs.read(trained.folder) if "loss" in row]
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])
    said = subprocess.run(
        [sys.executable, "-c", ALONE, str(trained.model)], capture_output=True, text=True, check=False, timeout=100
    )
    assert said.returncode == 0, said.stderr
    own = besag.load(trained.model, device="cpu")
    assert float(said.stdout) == pytest.approx(own.score("The dog sees the cat.").total, abs=1e-4)
    assert "`BesagForMaskedLM`" in (trained.model / "README.md").read_text(encoding="utf-8")
    weights = dict(own.model.named_parameters())
    assert weights["model.layers.0.attn.gate.weight"].any()
    assert weights["model.mixes.1.weight"].tolist() != [0.0, 0.0, 1.0]


def test_what_was_trained_can_be_loaded(trained: besag.TrainingResult) -> None:
    assert trained.finished
    assert trained.step == 4
    assert besag.load(trained.model, device="cpu").score("The dog sees the cat.").status == "ok"


@pytest.mark.parametrize("kind", ["table", "recipe", "folder"])
def test_a_recipe_may_be_said_in_any_way(recipe: Path, trained: besag.TrainingResult, kind: str) -> None:
    by_file = recipe_of(recipe, SETS, output="out")
    source: Any = {"table": as_table(recipe_of(recipe)), "recipe": recipe_of(recipe), "folder": trained.folder}[kind]
    assert recipe_of(source, CHANGES, output="out") == by_file


def test_a_table_is_left_as_it_was() -> None:
    table = {"data": {"train": ["a.txt"]}, "schedule": {"steps": 3}}
    assert recipe_of(table, ["schedule.tokens=5"]).schedule.tokens == 5
    assert table["schedule"] == {"steps": 3}


@pytest.mark.parametrize(
    ("source", "changes", "said"),
    [
        (3, (), "recipe=3: give a Recipe or a text or a path"),
        ({"schedule": {"steps": 3}}, "schedule.steps=4", "give a list"),
        ({"schedule": {"step": 3}}, (), "there is no key 'schedule.step'. Did you mean 'steps'?"),
        ("nowhere.toml", (), "there is no recipe 'nowhere.toml'"),
    ],
)  # fmt: skip
def test_wrong_recipes_are_refused_before_anything_is_written(
    source: Any, changes: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(BesagError) as refused:
        besag.train(source, changes, output=tmp_path / "out")
    assert said in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_ctrl_c_ends_a_run_from_python_after_its_step(
    recipe: Path, trained: besag.TrainingResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance, folder = logs.Log.advance, recipe.parent / "stopped"

    def pressed(self: logs.Log, step: int, *rest: Any) -> None:
        advance(self, step, *rest)
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    changes = {**CHANGES, "evaluation.sentences": 0}
    monkeypatch.setattr(logs.Log, "advance", pressed)
    first = besag.train(recipe, changes, output=folder, quiet=True)
    assert not first.finished
    assert 2 <= first.step < 4
    monkeypatch.setattr(logs.Log, "advance", advance)
    assert besag.train(recipe, changes, output=folder, resume=True, quiet=True).finished
    assert weights(folder) == weights(trained.folder)  # evaluation touches nothing
