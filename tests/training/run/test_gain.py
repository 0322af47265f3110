"""What going on brought: the base is measured before any step, the card and the log have it, and forgetting is told."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.training.a_run import small

import besag
from besag import models
from besag.conditionals import loading
from besag.errors import BesagError
from besag.evaluation.monitor import Monitor
from besag.training.data.sources import documents
from besag.training.recipe import read, to_toml
from besag.training.run import gain, logs

GENERAL = ["It rained all day long.", "Nobody came to the old house.", "They had been there before the war."] * 3


@pytest.fixture(scope="module")
def continued(tmp_path_factory: pytest.TempPathFactory) -> besag.TrainingResult:
    folder = tmp_path_factory.mktemp("continued")
    (folder / "general.txt").write_text("\n".join(GENERAL))
    (folder / "pairs.tsv").write_text("good\tbad\nThe cat sleeps.\tThe cat sleep.\nThe dogs run.\tThe dogs runs.\n")
    changes = {
        "model": {"start": models.EMBEDDED, "config": {}}, "schedule": {"steps": 6}, "optimizer": {"lr": 1e-3},
        "evaluation": {"sentences": 8, "every": 3, "general": [str(folder / "general.txt")],
                       "minimal_pairs": [str(folder / "pairs.tsv")]},
    }  # fmt: skip
    recipe = small(folder / "run", changes)
    return besag.train(recipe, quiet=True)


def test_the_base_is_measured_before_the_first_step_by_what_measures_the_end(
    continued: besag.TrainingResult,
) -> None:
    rows = logs.read(continued.folder)
    assert rows[0]["step"] == 0
    assert logs.is_evaluation(rows[0])
    recipe = read(continued.folder / "recipe.toml")
    words = loading.read_vocabulary(models.path(), models.EMBEDDED)
    texts = [one.text for one in documents(recipe.data, "valid")]
    alone = Monitor(recipe, words, texts)(besag.load(device="cpu").model, 0)
    assert continued.before.keys() == alone.keys()
    for name, number in alone.items():  # the untouched checkpoint, asked by itself
        assert continued.before[name] == pytest.approx(number, rel=1e-4, abs=1e-6), name


def test_the_domain_is_learned_and_told_on_the_card(continued: besag.TrainingResult) -> None:
    found = {one.name: one for one in gain.changes(continued.before, continued.metrics)}
    assert {"heldout_loss", "pseudo_bits_per_character", "minimal_pairs", "general_loss"} <= found.keys()
    assert found["heldout_loss"].difference < -0.1
    assert found["pseudo_bits_per_character"].difference < 0
    card = (continued.model / "README.md").read_text(encoding="utf-8")
    [table] = [part for part in card.split("\n## ") if part.startswith("What going on from the model brought")]
    one = found["heldout_loss"]
    assert f"| {one.before:.4g} | {one.after:.4g} | {one.difference:+.4g} |" in table
    assert "a rise is forgetting" in table


def test_a_finished_run_still_knows_its_base(continued: besag.TrainingResult) -> None:
    again = besag.train(continued.folder, output=continued.folder, resume=True, quiet=True)
    assert again.before == pytest.approx(continued.before)


def test_a_run_killed_at_its_first_step_measures_the_base_once(tmp_path: Path) -> None:
    recipe = small(
        tmp_path / "run",
        {
            "model": {"start": models.EMBEDDED, "config": {}},
            "tokenizer": {},
            "evaluation": {"sentences": 2},
            "schedule": {"steps": 1},
        },
    )
    log = tmp_path / "run" / logs.NAME
    log.parent.mkdir(parents=True)
    log.write_text('{"step": 0, "tokens": 0, "heldout_loss": 99.0}\n')
    (tmp_path / "run" / "recipe.toml").write_text(to_toml(recipe, beside=tmp_path / "run"))
    with pytest.warns(UserWarning, match="no checkpoint"):
        result = besag.train(recipe, resume=True, quiet=True)
    assert [row["step"] for row in logs.read(result.folder)].count(0) == 1
    assert result.before["heldout_loss"] < 50


def test_a_new_network_has_nothing_before_it() -> None:
    rows = [{"step": 10, "loss": 3.0}, {"step": 10, "heldout_loss": 2.0}]
    assert gain.of_base(rows) == {}
    assert gain.changes({}, {"heldout_loss": 2.0}) == []


def test_what_is_not_finite_is_no_change() -> None:
    [change] = gain.changes({"a": 1.0, "b": math.nan, "c": 2.0}, {"a": 0.5, "b": 1.0, "d": 1.0})
    assert change == ("a", 1.0, 0.5)
    assert change.difference == -0.5


def test_general_text_that_is_not_there_is_told_before_training(tmp_path: Path) -> None:
    recipe = small(tmp_path / "run", {"evaluation": {"general": [str(tmp_path / "none.txt")]}})
    with pytest.raises(BesagError, match=r"none\.txt"):
        besag.train(recipe, quiet=True)
