"""The layers of Qwen2 and Qwen3 with attention to both sides: `a2d-qwen2`, `a2d-qwen3` (dLLM's A2D models; Dream).

Weights, names and configuration are those of the causal family. Two switches are turned, because one is not enough in
every release of transformers: `config.is_causal` builds the masks of padded batches, and `is_causal` of each attention
module decides where no mask is given. Importing this module registers both families with transformers.
"""

from __future__ import annotations

from typing import Any

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Model,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3Model,
)


class A2DQwen2Config(Qwen2Config):
    model_type = "a2d-qwen2"


class A2DQwen3Config(Qwen3Config):
    model_type = "a2d-qwen3"


class BothSides:
    """Lifts the causal mask of every layer."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)  # type: ignore[call-arg]
        config.is_causal = False
        network: Any = self
        for module in network.modules():
            if hasattr(module, "is_causal"):
                module.is_causal = False


class A2DQwen2Model(BothSides, Qwen2Model):
    config_class = A2DQwen2Config


class A2DQwen2LMHeadModel(BothSides, Qwen2ForCausalLM):
    config_class = A2DQwen2Config


class A2DQwen3Model(BothSides, Qwen3Model):
    config_class = A2DQwen3Config


class A2DQwen3LMHeadModel(BothSides, Qwen3ForCausalLM):
    config_class = A2DQwen3Config


AutoConfig.register(A2DQwen2Config.model_type, A2DQwen2Config)
AutoModel.register(A2DQwen2Config, A2DQwen2Model)
AutoModelForMaskedLM.register(A2DQwen2Config, A2DQwen2LMHeadModel)
AutoConfig.register(A2DQwen3Config.model_type, A2DQwen3Config)
AutoModel.register(A2DQwen3Config, A2DQwen3Model)
AutoModelForMaskedLM.register(A2DQwen3Config, A2DQwen3LMHeadModel)
