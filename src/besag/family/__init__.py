"""Architectures that transformers lacks: besag's own, and published ones that are otherwise run by code from the Hub.

Importing this package registers them with transformers, so that a saved folder is loaded as any other:

    import besag.family
    model = AutoModelForMaskedLM.from_pretrained("run/model")

Depends on torch and transformers only.
"""

from __future__ import annotations

from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from besag.family.configuration import BesagConfig
from besag.family.gpt_bert import GptBertConfig, GptBertForMaskedLM, GptBertModel
from besag.family.llada2_moe import LLaDA2MoeConfig, LLaDA2MoeModel, LLaDA2MoeModelLM
from besag.family.llada_moe import LLaDAMoEConfig, LLaDAMoEModel, LLaDAMoEModelLM
from besag.family.ltg_bert import LtgBertConfig, LtgBertForMaskedLM, LtgBertModel
from besag.family.neobert import NeoBERT, NeoBERTConfig, NeoBERTLMHead
from besag.family.network import BesagForMaskedLM, BesagModel

__all__ = [
    "BesagConfig", "BesagForMaskedLM", "BesagModel", "GptBertConfig", "GptBertForMaskedLM", "GptBertModel",
    "LLaDA2MoeConfig", "LLaDA2MoeModel", "LLaDA2MoeModelLM", "LLaDAMoEConfig", "LLaDAMoEModel", "LLaDAMoEModelLM",
    "LtgBertConfig", "LtgBertForMaskedLM", "LtgBertModel", "NeoBERT", "NeoBERTConfig", "NeoBERTLMHead",
]  # fmt: skip

for config, body, masked in (
    (BesagConfig, BesagModel, BesagForMaskedLM),
    (GptBertConfig, GptBertModel, GptBertForMaskedLM),
    (LLaDA2MoeConfig, LLaDA2MoeModel, LLaDA2MoeModelLM),
    (LLaDAMoEConfig, LLaDAMoEModel, LLaDAMoEModelLM),
    (LtgBertConfig, LtgBertModel, LtgBertForMaskedLM),
    (NeoBERTConfig, NeoBERT, NeoBERTLMHead),
):
    AutoConfig.register(config.model_type, config)
    AutoModel.register(config, body)
    AutoModelForMaskedLM.register(config, masked)
