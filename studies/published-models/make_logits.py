"""Logits of the published modelling code on the small random models of `tests/published.py`.

    PYTHONPATH=src:. python studies/published-models/make_logits.py CODE

CODE is a folder that git ignores, with copies of the published files as packages (`__init__.py` in each):

    llada/  configuration_llada.py, modeling_llada.py      ZHZisZZ/dllm, dllm/pipelines/llada/models
    dream/  configuration_dream.py, modeling_dream.py,     ZHZisZZ/dllm, dllm/pipelines/dream/models
            generation_utils.py
    a2d/    modeling_llama.py, modeling_qwen2.py,          ZHZisZZ/dllm, dllm/pipelines/a2d/models
            modeling_qwen3.py

They were written for transformers 4.46 to 4.57; attributes that transformers 5 lacks are added here. The output is
tests/conditionals/published_logits.npz: one float32 array (2, 9, 64) per model.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from tests import published
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

OUT = Path(__file__).parents[2] / "tests" / "conditionals" / "published_logits.npz"
CLASSES = {
    "llada": ("llada.modeling_llada", "LLaDAModelLM", "LLaDAConfig"),
    "dream": ("dream.modeling_dream", "DreamModel", "DreamConfig"),
    "a2d-llama": ("a2d.modeling_llama", "A2DLlamaLMHeadModel", "A2DLlamaConfig"),
    "a2d-qwen2": ("a2d.modeling_qwen2", "A2DQwen2LMHeadModel", "A2DQwen2Config"),
    "a2d-qwen3": ("a2d.modeling_qwen3", "A2DQwen3LMHeadModel", "A2DQwen3Config"),
}


def plain_rotary(config: Any, device: Any = None, **_: Any) -> tuple[torch.Tensor, float]:
    """Frequencies of the rotary embedding without scaling, which transformers 5 computes in its own classes."""
    width = config.hidden_size // config.num_attention_heads
    return 1 / config.rope_theta ** (torch.arange(0, width, 2, device=device).float() / width), 1.0


def built(name: str) -> Any:
    """The published network with the weights of `tests/published.py`."""
    module, kind, configuration = CLASSES[name]
    code = import_module(module)
    said = {
        key: value for key, value in published.CONFIGURATIONS[name].items() if key not in ("model_type", "auto_map")
    }
    config = getattr(code, configuration)(**said)
    config.use_cache = False
    if name == "llada":
        inner = code.create_model_config_from_pretrained_config(config)
        inner.init_device, inner.use_cache = "cpu", False
        network = getattr(code, kind)(config, model=code.LLaDAModel(inner, init_params=False))
    else:
        own = {"default": plain_rotary} if name == "dream" else {}
        with patch.dict(ROPE_INIT_FUNCTIONS, own):
            network = getattr(code, kind)(config)
    stored = {key: torch.from_numpy(value) for key, value in published.weights(name).items()}
    missing, unexpected = network.load_state_dict(stored, strict=False)
    tied = {"lm_head.weight"} if said.get("tie_word_embeddings") else set()
    assert not unexpected, (name, unexpected)
    assert set(missing) <= tied, (name, missing)
    if tied:
        network.lm_head.weight = network.model.embed_tokens.weight
    for layer in network.model.layers if name.startswith("a2d") else ():
        layer.attention_type = "full_attention"  # an attribute that layers had until transformers 5
    return network.float().eval()


def main(code: str) -> None:
    sys.path.insert(0, code)
    found = {}
    for name in CLASSES:
        with torch.no_grad():
            logits = built(name)(input_ids=torch.from_numpy(published.IDS)).logits
        found[name] = logits.float().numpy()
        print(f"{name:10} {logits.shape} largest {float(logits.abs().max()):.3f}")
    np.savez_compressed(OUT, **found)


if __name__ == "__main__":
    main(sys.argv[1])
