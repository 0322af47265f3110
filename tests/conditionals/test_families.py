"""Families by name: those of transformers, and besag's own beside them."""

from transformers import BertConfig

from besag.conditionals import families
from besag.family import BesagConfig, BesagForMaskedLM


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
