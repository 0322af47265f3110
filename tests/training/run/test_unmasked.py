"""Runs in which a masking strategy finds nothing to mask: rejected where that cannot change, counted where it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import networks
from tests.training import a_run
from tests.training.run.test_resume import stopping_after

from besag.errors import BesagError
from besag.training.recipe import Recipe
from besag.training.run import logs, train
from besag.training.run.build import build
from besag.training.run.claim import begun

RESIDUES = "LAGVSERTIDPKQNFY"
WHOLE_WORD = {"law": "whole_word", "rate": 0.2}
RISING = {"law": "whole_word", "rate": 0.3, "end_rate": 1.0, "rate_law": "linear"}


def recipe(folder: Path, masking: dict[str, Any], length: int = 30, **sections: dict[str, Any]) -> Recipe:
    """An ESM that goes on with proteins of this many residues, each of them one word."""
    corpus, model = folder / "proteins.txt", folder / "esm"
    if not corpus.exists():
        drawn = np.random.default_rng(0).choice(list(RESIDUES), (80, length))
        corpus.write_text("\n".join(map("".join, drawn)) + "\n")
        networks.tiny("esm").save_pretrained(model)
        networks.vocabulary("esm").tokenizer.save_pretrained(model)
    changes: dict[str, dict[str, Any]] = {
        "data": {"train": [str(corpus)], "batch_tokens": 128, "unit": "documents"},
        "tokenizer": {"path": None},
        "model": {"start": str(model), "config": {}},
        "masking": masking,
        "optimizer": {"lr": 1e-3},
        "schedule": {"steps": 12},
    }
    for section, keys in sections.items():
        changes[section] = {**changes.get(section, {}), **keys}
    return a_run.small(folder / "run", changes)


def test_a_strategy_that_masks_nothing_is_rejected_and_one_that_works_is_named(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match=r"'whole_word' masks no token in the first 20 batches.*0\.2 .*'uniform'"):
        train(recipe(tmp_path, WHOLE_WORD), quiet=True)
    assert not begun(tmp_path / "run")
    result = train(recipe(tmp_path, {"law": "uniform", "rate": 0.2}), quiet=True)  # in the same folder
    assert result.metrics["loss"] > 0
    assert "no token was masked" not in (result.model / "README.md").read_text(encoding="utf-8")


def test_the_loss_of_another_objective_counts_masked_tokens_too(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="'whole_word' masks no token"):
        train(recipe(tmp_path, WHOLE_WORD, objective={"name": "mdlm"}), quiet=True)


def test_a_rate_that_rises_but_not_far_enough_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="'whole_word' masks no token"):
        train(recipe(tmp_path, RISING | {"end_rate": 0.6}), quiet=True)


@pytest.mark.parametrize(("masking", "batches"), [(WHOLE_WORD, 20), (RISING | {"end_rate": 0.6}, 24)])
def test_a_stream_that_masks_nothing_leaves_no_model(tmp_path: Path, masking: dict[str, Any], batches: int) -> None:
    """It cannot be read before it is trained on: it is rejected at its 20th batch, or at its end."""
    wanted = recipe(tmp_path, masking, data={"stream": True, "held_out": 0.0}, run={"accumulate": 2})
    with pytest.raises(BesagError, match=f"masks no token in the first {batches} batches"):
        train(wanted, quiet=True)
    assert logs.read(tmp_path / "run")[-1]["step"] == batches // 2 - (batches == 20)
    assert not (tmp_path / "run" / "model").exists()


def test_batches_that_mask_nothing_are_counted_on_the_card_over_a_resumed_run(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, RISING, length=5, data={"batch_tokens": 16, "max_length": 16})
    batches = build(wanted, device=torch.device("cpu")).batches
    empty = sum(float(batches[number].weight.sum()) == 0 for number in range(12))  # type: ignore[index]
    assert 0 < empty < 12
    train(wanted, stop=stopping_after(7), quiet=True)
    result = train(wanted, resume=True, quiet=True)
    [said] = re.findall(r"no token was masked in (.*) batches", (result.model / "README.md").read_text("utf-8"))
    assert said == f"{empty} of 12"
