"""Published architectures at small sizes: config.json, weights drawn by numpy, the logits of the published code.

Names of keys and weights are those of the published files, listed here independently of besag's modules. The logits in
`studies/published-models` come from the published code with these weights (the scripts there). Import it as
`tests.family.published`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from tests.networks import vocabulary

LOGITS = Path(__file__).parents[2] / "studies" / "published-models"
WORDS, LENGTHS = (
    96,
    (20, 13, 1),
)  # ids, of which the tokenizer has 92; tokens of the three sequences, padded on the right
POSITIONS = "position_indices"  # a table in the published files that follows from the configuration
ALIASES = {"classifier.nonlinearity.5.weight": "embedding.word_embedding.weight"}  # one matrix, stored twice
Shapes = dict[str, tuple[int, ...]]


class Published(NamedTuple):
    config: dict[str, Any]
    shapes: Callable[[dict[str, Any]], Shapes]


def neobert(config: dict[str, Any]) -> Shapes:
    width, inner = config["hidden_size"], 32  # two thirds of intermediate_size 48
    shapes: Shapes = {"model.encoder.weight": (config["vocab_size"], width)}
    for index in range(config["num_hidden_layers"]):
        layer = f"model.transformer_encoder.{index}"
        shapes |= {
            f"{layer}.qkv.weight": (3 * width, width),
            f"{layer}.wo.weight": (width, width),
            f"{layer}.ffn.w12.weight": (2 * inner, width),
            f"{layer}.ffn.w3.weight": (width, inner),
            f"{layer}.attention_norm.weight": (width,),
            f"{layer}.ffn_norm.weight": (width,),
        }
    return shapes | {
        "model.layer_norm.weight": (width,),
        "decoder.weight": (config["vocab_size"], width),
        "decoder.bias": (config["vocab_size"],),
    }


def ltg_bert(config: dict[str, Any]) -> Shapes:
    width, inner = config["hidden_size"], config["intermediate_size"]
    places = config["max_position_embeddings"]
    shapes: Shapes = {
        "embedding.word_embedding.weight": (config["vocab_size"], width),
        "embedding.relative_embedding": (2 * config["position_bucket_size"] - 1, width),
        "embedding.relative_layer_norm.weight": (width,),
        "embedding.relative_layer_norm.bias": (width,),
    }
    for index in range(config["num_hidden_layers"]):
        layer = f"transformer.layers.{index}"
        for name, rows in (("in_proj_qk", 2 * width), ("in_proj_v", width), ("out_proj", width)):
            shapes |= {f"{layer}.attention.{name}.weight": (rows, width), f"{layer}.attention.{name}.bias": (rows,)}
        shapes |= {f"{layer}.attention.post_layer_norm.{part}": (width,) for part in ("weight", "bias")}
        shapes |= {f"{layer}.attention.{POSITIONS}": (places, places)}
        shapes |= {f"{layer}.mlp.mlp.1.weight": (2 * inner, width), f"{layer}.mlp.mlp.4.weight": (width, inner)}
    return shapes | {
        "classifier.nonlinearity.1.weight": (width, width),
        "classifier.nonlinearity.1.bias": (width,),
        "classifier.nonlinearity.5.weight": (config["vocab_size"], width),
        "classifier.nonlinearity.5.bias": (config["vocab_size"],),
    }


def gpt_bert(config: dict[str, Any]) -> Shapes:
    width, inner, places = config["hidden_size"], config["intermediate_size"], config["max_position_embeddings"]
    shapes: Shapes = {
        "embedding.word_embedding.weight": (config["vocab_size"], width),
        "embedding.relative_embedding": (2 * config["position_bucket_size"] - 1, width),
        "embedding.relative_layer_norm.weight": (width,),
        "embedding.relative_layer_norm.bias": (width,),
    }
    for index in range(config["num_hidden_layers"]):
        layer = f"transformer.attention_layers.{index}"
        for name, rows in (("in_proj_qk", 2 * width), ("in_proj_vg", 2 * width), ("out_proj", width)):
            shapes |= {f"{layer}.{name}.weight": (rows, width), f"{layer}.{name}.bias": (rows,)}
        shapes[f"{layer}.{POSITIONS}"] = (places, places)
        layer = f"transformer.mlp_layers.{index}"
        shapes |= {f"{layer}.mlp.1.weight": (2 * inner, width), f"{layer}.mlp.4.weight": (width, inner)}
    for index in range(2 * config["num_hidden_layers"]):
        shapes[f"transformer.dwa_modules.alphas.{index}"] = (index + 2,)
    return shapes | {
        "classifier.nonlinearity.1.weight": (width, width),
        "classifier.nonlinearity.1.bias": (width,),
        "classifier.nonlinearity.5.weight": (config["vocab_size"], width),
        "classifier.nonlinearity.5.bias": (config["vocab_size"],),
    }


def llada_moe(config: dict[str, Any]) -> Shapes:
    width, size = config["hidden_size"], config["hidden_size"] // config["num_attention_heads"]
    keys = size * config["num_key_value_heads"]
    shapes: Shapes = {"model.embed_tokens.weight": (config["vocab_size"], width)}
    for index, freq in enumerate(config["moe_layer_freq"]):
        layer = f"model.layers.{index}"
        for name, rows in (("q_proj", width), ("k_proj", keys), ("v_proj", keys), ("o_proj", width)):
            shapes[f"{layer}.self_attn.{name}.weight"] = (rows, width)
        shapes |= {f"{layer}.self_attn.{name}.weight": (size,) for name in ("q_norm", "k_norm")}
        shapes |= {f"{layer}.{name}.weight": (width,) for name in ("input_layernorm", "post_attention_layernorm")}
        if freq == 0:
            shapes |= gated(f"{layer}.mlp", width, config["dense_intermediate_size"])
            continue
        shapes[f"{layer}.mlp.gate.weight"] = (config["num_experts"], width)
        shapes[f"{layer}.mlp.expert_bias"] = (config["num_experts"],)
        shapes |= gated(f"{layer}.shared_expert", width, config["shared_expert_intermediate_size"])
        for expert in range(config["num_experts"]):
            shapes |= gated(f"{layer}.mlp.experts.{expert}", width, config["expert_intermediate_size"])
    return shapes | {"model.norm.weight": (width,), "lm_head.weight": (config["vocab_size"], width)}


def llada2_moe(config: dict[str, Any]) -> Shapes:
    width, size = config["hidden_size"], config["head_dim"]
    heads, inner = config["num_attention_heads"], config["moe_intermediate_size"]
    shapes: Shapes = {"model.word_embeddings.weight": (config["vocab_size"], width)}
    for index in range(config["num_hidden_layers"]):
        layer = f"model.layers.{index}"
        rows = (heads + 2 * config["num_key_value_heads"]) * size
        shapes |= {
            f"{layer}.attention.query_key_value.weight": (rows, width),
            f"{layer}.attention.dense.weight": (width, heads * size),
            f"{layer}.attention.query_layernorm.weight": (size,),
            f"{layer}.attention.key_layernorm.weight": (size,),
            f"{layer}.input_layernorm.weight": (width,),
            f"{layer}.post_attention_layernorm.weight": (width,),
        }
        if index < config["first_k_dense_replace"]:
            shapes |= gated(f"{layer}.mlp", width, config["intermediate_size"])
            continue
        shapes[f"{layer}.mlp.gate.weight"] = (config["num_experts"], width)
        shapes[f"{layer}.mlp.gate.expert_bias"] = (config["num_experts"],)
        shapes |= gated(f"{layer}.mlp.shared_experts", width, inner * config["num_shared_experts"])
        for expert in range(config["num_experts"]):
            shapes |= gated(f"{layer}.mlp.experts.{expert}", width, inner)
    return shapes | {"model.norm.weight": (width,), "lm_head.weight": (config["vocab_size"], width)}


def gated(name: str, width: int, inner: int) -> Shapes:
    up = {f"{name}.{part}.weight": (inner, width) for part in ("gate_proj", "up_proj")}
    return up | {f"{name}.down_proj.weight": (width, inner)}


MODELS = {
    "gpt_bert": Published(
        {
            "architectures": ["LtgbertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
            "auto_map": {
                "AutoConfig": "configuration_ltgbert.LtgbertConfig",
                "AutoModelForMaskedLM": "modeling_ltgbert.LtgbertForMaskedLM",
            },
            "hidden_dropout_prob": 0.1, "hidden_size": 64, "intermediate_size": 48, "layer_norm_eps": 1e-05,
            "max_position_embeddings": 40, "num_attention_heads": 4, "num_hidden_layers": 3,
            "position_bucket_size": 8, "temperature": 2.65, "torch_dtype": "float32",
            "transformers_version": "4.44.0", "vocab_size": WORDS,
        },
        gpt_bert,
    ),
    "llada2_moe": Published(
        {
            "architectures": ["LLaDA2MoeModelLM"], "attention_dropout": 0.0,
            "auto_map": {
                "AutoConfig": "configuration_llada2_moe.LLaDA2MoeConfig",
                "AutoModel": "modeling_llada2_moe.LLaDA2MoeModel",
            },
            "dtype": "bfloat16", "embedding_dropout": 0.0, "first_k_dense_replace": 1, "head_dim": 24,
            "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 56,
            "max_position_embeddings": 40, "max_window_layers": 20, "model_type": "llada2_moe",
            "moe_intermediate_size": 16, "moe_router_enable_expert_bias": True, "n_group": 4, "norm_head": False,
            "norm_topk_prob": True, "num_attention_heads": 4, "num_experts": 16, "num_experts_per_tok": 4,
            "num_hidden_layers": 3, "num_key_value_heads": 2, "num_shared_experts": 1, "output_dropout": 0.0,
            "output_router_logits": False, "pad_token_id": 0, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-06,
            "rope_scaling": None, "rope_theta": 600000, "routed_scaling_factor": 2.5, "router_dtype": "fp32",
            "score_function": "sigmoid", "sliding_window": 4096, "tie_word_embeddings": False, "topk_group": 2,
            "transformers_version": "4.52.3", "use_bias": False, "use_cache": False, "use_qkv_bias": False,
            "use_rmsnorm": True, "use_sliding_window": False, "vocab_size": WORDS,
        },
        llada2_moe,
    ),
    "llada_moe": Published(
        {
            "architectures": ["LLaDAMoEModelLM"], "attention_bias": False, "attention_dropout": 0.0,
            "auto_map": {
                "AutoConfig": "configuration_lladamoe.LLaDAConfig", "AutoModel": "modeling_lladamoe.LLaDAMoEModelLM",
            },
            "clip_qkv": None, "dense_intermediate_size": 56, "eos_token_id": 3, "expert_intermediate_size": 24,
            "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "max_position_embeddings": 40,
            "model_type": "llada", "moe_layer_freq": [1, 0, 1], "moe_router_enable_expert_bias": True,
            "moe_router_score_function": "softmax", "norm_topk_prob": None, "num_attention_heads": 4,
            "num_experts": 8, "num_experts_per_tok": 3, "num_hidden_layers": 3, "num_key_value_heads": 2,
            "output_router_logits": False, "pad_token_id": 0, "partial_rotary_factor": 1, "qk_layernorm": True,
            "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 50000, "routed_scaling_factor": 1,
            "router_aux_loss_coef": 0.01, "router_num_group": None, "router_topk_group": None,
            "shared_expert_intermediate_size": 40, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "transformers_version": "4.46.1", "use_cache": False, "vocab_size": WORDS,
        },
        llada_moe,
    ),
    "ltg_bert": Published(
        {
            "architectures": ["LtgBertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
            "auto_map": {
                "AutoConfig": "configuration_ltgbert.LtgBertConfig",
                "AutoModelForMaskedLM": "modeling_ltgbert.LtgBertForMaskedLM",
            },
            "classifier_dropout": 0.2, "hidden_dropout_prob": 0.1, "hidden_size": 64, "intermediate_size": 48,
            "layer_norm_eps": 1e-07, "max_position_embeddings": 40, "model_type": "bert", "num_attention_heads": 4,
            "num_hidden_layers": 3, "output_all_encoded_layers": True, "pad_token_id": 4, "position_bucket_size": 8,
            "torch_dtype": "float32", "transformers_version": "4.26.0", "vocab_size": WORDS,
        },
        ltg_bert,
    ),
    "neobert": Published(
        {
            "architectures": ["NeoBERTLMHead"],
            "auto_map": {"AutoConfig": "model.NeoBERTConfig", "AutoModelForMaskedLM": "model.NeoBERTLMHead"},
            "classifier_init_range": 0.02, "decoder_init_range": 0.02, "dim_head": 16, "embedding_init_range": 0.02,
            "hidden_size": 64, "intermediate_size": 48,
            "kwargs": {
                "classifier_init_range": 0.02, "pretrained_model_name_or_path": "bert-base-uncased",
                "trust_remote_code": True,
            },
            "max_length": 40, "model_type": "neobert", "norm_eps": 1e-05, "num_attention_heads": 4,
            "num_hidden_layers": 3, "pad_token_id": 0, "pretrained_model_name_or_path": "bert-base-uncased",
            "torch_dtype": "float32", "transformers_version": "4.48.2", "trust_remote_code": True, "vocab_size": WORDS,
        },
        neobert,
    ),
}  # fmt: skip


def weights(name: str) -> dict[str, torch.Tensor]:
    """Return weights in float32: vectors near 1 for scales and near 0 for biases, matrices with rows of length 1."""
    model, random = MODELS[name], np.random.default_rng(38)
    drawn = {}
    for key, shape in model.shapes(model.config).items():
        noise = random.standard_normal(shape)
        if key.endswith(POSITIONS):
            noise = np.zeros(shape)
        if len(shape) > 1:
            drawn[key] = noise * shape[-1] ** -0.5
        else:
            drawn[key] = 0.2 * noise + (1.0 if "norm" in key and key.endswith("weight") else 0.0)
    drawn |= {key: drawn[other] for key, other in ALIASES.items() if key in drawn}
    return {key: torch.from_numpy(value.astype(np.float32)) for key, value in drawn.items()}


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids and attention mask, both (3, 20)."""
    random = np.random.default_rng(13)
    ids = torch.from_numpy(random.integers(5, WORDS, (len(LENGTHS), max(LENGTHS))))
    ids[:, 1::4] = vocabulary("bert").mask_id
    mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    return ids * mask, mask.long()


def write(name: str, folder: Path) -> Path:
    """Write a folder as published: config.json, safetensors and a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary("bert").tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(MODELS[name].config))
    save_file(weights(name), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def logits(name: str) -> torch.Tensor:
    """Return what the published code computed for `batch()`, (3, 20, V)."""
    return torch.from_numpy(np.load(LOGITS / f"{name}.npy"))


def blocks(length: int) -> torch.Tensor:
    """Return which token attends to which, (20, 20), in blocks of `length` tokens: its own block and those before."""
    block = torch.arange(max(LENGTHS)) // length
    return block[None, :] <= block[:, None]


def keep(name: str, found: torch.Tensor) -> None:
    """Store the logits of the published code."""
    assert found.dtype == torch.float32
    np.save(LOGITS / f"{name}.npy", found.detach().numpy())
