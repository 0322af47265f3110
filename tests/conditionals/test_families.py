"""Families by name: those of transformers, and besag's own beside them."""

import json

import pytest
from tests.training import a_run
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
)

import besag
from besag.conditionals import families
from besag.conditionals.loading import describe
from besag.family import BesagConfig, BesagForMaskedLM
from besag.training.run import train


def test_besags_own_stand_beside_those_of_transformers():
    known = families.masked()
    assert known["bert"] == "BertForMaskedLM"
    assert known["besag"] == BesagForMaskedLM.__name__
    assert BesagConfig.model_type in families.OWN
    assert "gpt2" in families.causal()
    assert "besag" not in families.causal()


def test_a_family_has_a_configuration_or_is_not_known():
    assert families.configuration("besag") is BesagConfig
    assert families.configuration("bert") is BertConfig
    assert families.configuration("besga") is None
    assert families.configuration(None) is None
    assert families.configuration(["bert"]) is None


class OwnConfig(BertConfig):
    model_type = "somebodys-own"


class OwnForMaskedLM(BertForMaskedLM):
    config_class = OwnConfig


@pytest.fixture
def registered():
    """A user's own family; transformers has no way to forget one, so it is taken out of its tables."""
    AutoConfig.register(OwnConfig.model_type, OwnConfig)
    AutoModelForMaskedLM.register(OwnConfig, OwnForMaskedLM)
    yield OwnConfig.model_type
    del CONFIG_MAPPING._extra_content[OwnConfig.model_type]
    del MODEL_FOR_MASKED_LM_MAPPING._extra_content[OwnConfig]


def test_a_registered_class_loads_trains_and_saves(registered, tmp_path):
    assert families.masked()[registered] == "OwnForMaskedLM"
    shape = {"family": registered, "config": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}}
    done = train(a_run.small(tmp_path / "out", {"model": shape, "schedule": {"steps": 2}}), quiet=True)
    folder = done.folder / "model"
    assert json.loads((folder / "config.json").read_text())["model_type"] == registered
    assert describe(folder)["usable"]
    lm = besag.load(folder, device="cpu")
    assert type(lm.model) is OwnForMaskedLM
    assert lm.score("The dog sees.").total < 0
    start = {"model": {"start": str(folder), "config": {}}, "tokenizer": {"path": str(folder)}}
    again = train(a_run.small(tmp_path / "again", {**start, "schedule": {"steps": 1}}), quiet=True)
    assert type(besag.load(again.folder / "model", device="cpu").model) is OwnForMaskedLM
