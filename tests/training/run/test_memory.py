"""A run that does not fit is refused before its network is made, and what fits is let through."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from tests.training.a_run import small

from besag import hardware
from besag.errors import BesagError
from besag.training.network import networks
from besag.training.recipe import Recipe, recipe_of
from besag.training.run import memory, train
from besag.training.run.build import build

GIB = 2**30
CPU = torch.device("cpu")


def recipe(**changes: Any) -> Recipe:
    return recipe_of({"data": {"train": ["a.txt"]}, "schedule": {"steps": 1}, **changes})


def test_the_default_recipe_suits_a_laptop() -> None:
    sketch = networks.check_shape(recipe())
    assert 4e6 < sum(weight.numel() for weight in sketch.parameters()) < 8e6
    assert memory.need(recipe(), sketch, "float32").total < 1.5 * GIB


@pytest.mark.parametrize("family", ["bert", "distilbert", "deberta-v2", "xlm", "albert", "besag"])
def test_other_families_are_as_small_under_their_own_names(family: str) -> None:
    sketch = networks.check_shape(recipe(model={"family": family}))
    assert sketch.config.hidden_size == 256
    own = networks.check_shape(recipe(model={"family": family, "config": {"num_hidden_layers": 2}}))
    assert own.config.num_hidden_layers == 2


def test_a_setting_under_the_familys_own_name_counts() -> None:
    sketch = networks.check_shape(recipe(model={"family": "distilbert", "config": {"dim": 64, "n_heads": 2}}))
    assert (sketch.config.hidden_size, sketch.config.num_attention_heads) == (64, 2)


def test_weights_gradients_moments_and_a_batch_are_counted() -> None:
    wanted = recipe(data={"train": ["a"], "batch_tokens": 1000, "max_length": 100}, masking={"rate": 0.5})
    sketch = networks.check_shape(wanted)
    count = sum(weight.numel() for weight in sketch.parameters())
    layers, logits = 34 * 2 * 1000 * 256 * 6, 4 * 3 * 500 * 8192
    assert memory.need(wanted, sketch, "float32") == (16 * count, layers + logits)
    assert memory.need(wanted, sketch, "bfloat16") == (16 * count, layers // 2 + logits)
    assert memory.need(wanted, sketch, "float32", trained=0).weights == 4 * count


def test_what_besags_family_keeps_besides_is_counted() -> None:
    data = {"train": ["a"], "batch_tokens": 1000, "max_length": 100}
    off = {"gate": False, "layer_weights": False, "qk_norm": False}
    sketches = {
        key: networks.check_shape(recipe(data=data, model={"family": "besag", "config": config}))
        for key, config in {"all": {}, "no gate": {"gate": False}, "none": off}.items()
    }
    needs = {key: memory.need(recipe(data=data), sketch, "bfloat16").batch for key, sketch in sketches.items()}
    assert (needs["all"] - needs["none"], needs["all"] - needs["no gate"]) == (10 * 1000 * 256 * 6, 2 * 1000 * 256 * 6)


def test_a_network_that_no_machine_holds_is_refused_before_it_is_made(tmp_path) -> None:
    huge = {"hidden_size": 2**16, "num_attention_heads": 64, "num_hidden_layers": 40, "intermediate_size": 2**18}
    with pytest.raises(BesagError, match=r"this run needs about .* GiB: .*left on cpu.*run.check_memory = false"):
        build(small(tmp_path / "run", {"model": {"config": huge}}), device=CPU)
    assert not (tmp_path / "run").exists()


def test_a_run_that_does_not_fit_is_refused_or_only_warned_of(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(hardware, "memory_available", lambda device=None: 2**20)
    with pytest.raises(BesagError, match=r"for a batch of 256 tokens; 1 MiB are left on cpu. Make data.batch_tokens"):
        train(small(tmp_path / "run"), quiet=True)
    with pytest.warns(UserWarning, match="1 MiB are left on cpu"):
        build(small(tmp_path / "run", {"run": {"check_memory": False}}), device=CPU)
    monkeypatch.setattr(hardware, "memory_available", lambda device=None: None)  # nobody tells
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        build(small(tmp_path / "run"), device=CPU)
