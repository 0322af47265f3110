"""Which families of networks there are: those of transformers, and besag's own.

Knows names. A family of besag's own is imported, and with that made known to transformers, when it is asked for.
Classes that a user registers (`AutoModelForMaskedLM.register`) count as families of transformers. Refuses to know what
is in a network.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# model_type, and the class that predicts at masks
OWN = {
    "a2d-qwen2": "A2DQwen2LMHeadModel", "a2d-qwen3": "A2DQwen3LMHeadModel", "besag": "BesagForMaskedLM",
    "gpt_bert": "GptBertForMaskedLM",
    "llada2_moe": "LLaDA2MoeModelLM", "llada_moe": "LLaDAMoEModelLM", "ltg_bert": "LtgBertForMaskedLM",
    "neobert": "NeoBERTLMHead",
}  # fmt: skip
MODULES = dict.fromkeys(OWN, "besag.family") | dict.fromkeys(("a2d-qwen2", "a2d-qwen3"), "besag.family.both_sides")

# Published classes whose config.json gives another architecture's model_type, and what to read it as.
OF_CLASS = {
    "LtgbertForMaskedLM": "gpt_bert",
    "LtgBertForMaskedLM": "ltg_bert", "LLaDAMoEModelLM": "llada_moe", "LLaDAMoEModel": "llada_moe",
}  # fmt: skip

# put together like BERT: the same modules under the same names
LIKE_BERT = ("bert", "roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "electra", "data2vec-text")


def masked() -> dict[str, str]:
    """Every family that answers at masks, and its class."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING_NAMES

    return {**MODEL_FOR_MASKED_LM_MAPPING_NAMES, **_registered(MODEL_FOR_MASKED_LM_MAPPING), **OWN}


def causal() -> dict[str, str]:
    """Every family that answers about what comes next, and its class."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return {**MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, **_registered(MODEL_FOR_CAUSAL_LM_MAPPING)}


def _registered(mapping: Any) -> dict[str, str]:
    """The families whose classes were registered in this process; transformers keeps them apart from its own."""
    return {config.model_type: model.__name__ for config, model in mapping._extra_content.items()}


def decoders() -> dict[str, str]:
    """Every family that reads one text and writes another, and its class."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES

    return dict(MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES)


def configuration(family: object) -> Any:
    """The class of a family's configuration; None where nobody knows such a family."""
    from transformers import CONFIG_MAPPING

    if not isinstance(family, str):
        return None
    if family in OWN:
        import_module(MODULES[family])
    return CONFIG_MAPPING[family] if family in CONFIG_MAPPING else None  # noqa: SIM401 - its `get` imports all families
