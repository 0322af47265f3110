"""Families by name: those of transformers, and besag's own beside them."""

import json

import pytest
import torch
from tests import networks
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
from besag.training.run.build import build


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
    words = networks.vocabulary("bert")
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    OwnForMaskedLM(OwnConfig(vocab_size=words.size, **shape)).save_pretrained(tmp_path / "own")
    words.tokenizer.save_pretrained(tmp_path / "own")
    assert describe(tmp_path / "own")["usable"]
    start = str(tmp_path / "own")
    changes = {"model": {"start": start, "config": {}}, "tokenizer": {"path": start}, "schedule": {"steps": 2}}
    folder = train(a_run.small(tmp_path / "out", changes), quiet=True).folder / "model"
    assert json.loads((folder / "config.json").read_text())["model_type"] == registered
    lm = besag.load(folder, device="cpu")
    assert type(lm.model) is OwnForMaskedLM
    assert lm.score("The dog sees.").total < 0


def test_a_registered_class_can_be_built_anew(registered, tmp_path):
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    made = build(a_run.small(tmp_path, {"model": {"family": registered, "config": shape}}), device=torch.device("cpu"))
    assert type(made.model) is OwnForMaskedLM
