"""Small random models in published formats: a folder with the published names, and the ids they are run on.

Weights are uniform numbers of numpy's PCG64, the same on every machine. `studies/published-models/make_logits.py` runs
the published code on them. Import it as `tests.published`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tests.tokenizers import SENTENCES
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

VOCABULARY, WIDTH, LAYERS, HEADS, KV_HEADS, INNER, MASK_ID = 64, 32, 3, 4, 2, 48, 2
PAD, UNKNOWN, MASK = "<|endoftext|>", "<unk>", "<|mdm_mask|>"
NAMED = {"pad_token": PAD, "eos_token": PAD, "unk_token": UNKNOWN}

LLADA: dict[str, Any] = {
    "model_type": "llada", "architectures": ["LLaDAModelLM"], "d_model": WIDTH, "n_layers": LAYERS, "n_heads": HEADS,
    "n_kv_heads": KV_HEADS, "mlp_hidden_size": INNER, "mlp_ratio": 4, "embedding_size": VOCABULARY,
    "vocab_size": VOCABULARY - 4, "weight_tying": False, "include_bias": False, "include_qkv_bias": False,
    "bias_for_layer_norm": False, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_sequence_length": 40,
    "block_type": "llama", "activation_type": "silu", "layer_norm_type": "rms", "layer_norm_with_affine": True,
    "rope": True, "rope_full_precision": True, "alibi": False, "attention_layer_norm": False, "input_emb_norm": False,
    "scale_logits": False, "multi_query_attention": None, "block_group_size": 1, "flash_attention": False,
    "attention_dropout": 0.0, "residual_dropout": 0.0, "embedding_dropout": 0.0, "mask_token_id": MASK_ID,
    "pad_token_id": 0, "eos_token_id": 0, "use_cache": False,
    "auto_map": {"AutoModel": "modeling_llada.LLaDAModelLM"},
}  # fmt: skip
QWEN: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS, "intermediate_size": INNER, "hidden_act": "silu", "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0, "max_position_embeddings": 40, "attention_dropout": 0.0, "use_cache": False,
    "pad_token_id": 0, "tie_word_embeddings": False,
}  # fmt: skip
WINDOWS = {"use_sliding_window": False, "sliding_window": None, "max_window_layers": 2}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "llada": LLADA,
    "dream": {
        **QWEN, **WINDOWS, "model_type": "Dream", "architectures": ["DreamModel"], "mask_token_id": MASK_ID,
        "auto_map": {"AutoModel": "modeling_dream.DreamModel"},
    },
    "a2d-llama": {**QWEN, "model_type": "a2d-llama", "architectures": ["A2DLlamaLMHeadModel"]},
    "a2d-qwen2": {**QWEN, **WINDOWS, "model_type": "a2d-qwen2", "architectures": ["A2DQwen2LMHeadModel"]},
    "a2d-qwen3": {
        **QWEN, **WINDOWS, "model_type": "a2d-qwen3", "architectures": ["A2DQwen3LMHeadModel"], "head_dim": 8,
        "tie_word_embeddings": True, "attention_bias": False,
    },
}  # fmt: skip
IDS = np.array([[5, 6, 2, 8, 9, 2, 11, 12, 13], [20, 2, 2, 23, 24, 25, 26, 27, 2]])  # (2, 9)


def shapes(name: str) -> dict[str, tuple[int, ...]]:
    """The tensors of a published checkpoint, by the published names."""
    size, inner = WIDTH // HEADS * KV_HEADS, {"gate": (INNER, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER)}
    found: dict[str, tuple[int, ...]] = {}
    if name == "llada":
        for layer in range(LAYERS):
            own = {
                "q_proj": (WIDTH, WIDTH), "k_proj": (size, WIDTH), "v_proj": (size, WIDTH), "attn_out": (WIDTH, WIDTH),
                "ff_proj": inner["gate"], "up_proj": inner["up"], "ff_out": inner["down"], "attn_norm": (WIDTH,),
                "ff_norm": (WIDTH,),
            }  # fmt: skip
            found |= {f"model.transformer.blocks.{layer}.{key}.weight": shape for key, shape in own.items()}
        ends = {"wte": (VOCABULARY, WIDTH), "ln_f": (WIDTH,), "ff_out": (VOCABULARY, WIDTH)}
        return found | {f"model.transformer.{key}.weight": shape for key, shape in ends.items()}
    for layer in range(LAYERS):
        before = f"model.layers.{layer}"
        found |= {f"{before}.mlp.{key}_proj.weight": shape for key, shape in inner.items()}
        for key, rows in {"q": WIDTH, "k": size, "v": size, "o": WIDTH}.items():
            found[f"{before}.self_attn.{key}_proj.weight"] = (rows, WIDTH)
            if key != "o" and name in ("dream", "a2d-qwen2"):
                found[f"{before}.self_attn.{key}_proj.bias"] = (rows,)
            if key in "qk" and name == "a2d-qwen3":
                found[f"{before}.self_attn.{key}_norm.weight"] = (WIDTH // HEADS,)
        found |= {f"{before}.{key}_layernorm.weight": (WIDTH,) for key in ("input", "post_attention")}
    found |= {"model.embed_tokens.weight": (VOCABULARY, WIDTH), "model.norm.weight": (WIDTH,)}
    return found if CONFIGURATIONS[name]["tie_word_embeddings"] else found | {"lm_head.weight": (VOCABULARY, WIDTH)}


def weights(name: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Uniform in ±0.4; those of norms around 1."""
    drawn = np.random.Generator(np.random.PCG64(seed))
    found = {}
    for key, shape in sorted(shapes(name).items()):
        own = drawn.random(shape) - 0.5
        norm = "norm" in key or "ln_f" in key
        found[key] = (1 + 0.4 * own if norm else 0.8 * own).astype("f4")
    return found


def tokenizer(mask: bool) -> PreTrainedTokenizerFast:
    """Words and three special tokens; `mask` says whether it names the third as its mask token."""
    words = sorted({word for text in SENTENCES for word, _ in pre_tokenizers.Whitespace().pre_tokenize_str(text)})
    table = {token: index for index, token in enumerate([PAD, UNKNOWN, MASK, *words])}
    assert len(table) <= VOCABULARY - 4
    backend = Tokenizer(models.WordLevel(table, unk_token=UNKNOWN))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    named = NAMED | ({"mask_token": MASK} if mask else {})
    found = PreTrainedTokenizerFast(tokenizer_object=backend, **named)
    found.add_special_tokens({"extra_special_tokens": [MASK]})
    return found


def write(folder: Path, name: str, **changes: Any) -> Path:
    """A folder in the published format; settings that are `...` are left out of its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    said = {**CONFIGURATIONS[name], "torch_dtype": "bfloat16", "transformers_version": "4.46.2", **changes}
    said = {key: value for key, value in said.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(said), encoding="utf-8")
    save_file(weights(name), folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer(mask=name != "llada").save_pretrained(folder)
    return folder
