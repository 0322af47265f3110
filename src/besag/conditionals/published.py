"""Published masked diffusion models, mapped onto networks that transformers or `besag.family` can build.

`PUBLISHED` has one row per format: model type and architectures of its config.json → the causal family whose layers it
has, and what its configuration, weights and tokenizer call differently. `BOTH_SIDES` names the family with the same
layers and bidirectional attention; training from a causal checkpoint uses it as well. No published code is run.

Two properties are written into the configuration under keys of besag's own, so that a saved folder keeps them:

    besag_shift           true: the output at position i − 1 predicts the token at position i; position 0 keeps its own
    besag_mask_token_id   the mask token, for a tokenizer that names none
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from besag.conditionals import families
from besag.errors import BesagError, quoted

SHIFT_KEY, MASK_KEY = "besag_shift", "besag_mask_token_id"

# causal family: the family with the same weights under the same names, and attention to both sides
BOTH_SIDES = {"llama": "eurobert", "qwen2": "a2d-qwen2", "qwen3": "a2d-qwen3"}

Settings = dict[str, Any]
T = TypeVar("T")


class Format(NamedTuple):
    """How a published model is stored.

    `causal` is the family whose layers it has. `architectures` are accepted class names; empty accepts any.
    `configuration` maps the settings of its config.json to that family's; `weights` are pairs (pattern, replacement)
    for the names of its tensors. `mask_id` is used where its config.json has no mask_token_id.
    """

    causal: str
    architectures: tuple[str, ...] = ()
    configuration: Callable[[Settings, str], Settings] = lambda said, _: dict(said)
    weights: tuple[tuple[str, str], ...] = ()
    mask_id: int | None = None
    shift: bool = False


# ---- LLaDA 8B: Llama under names of its own

LLADA_NAMES = {
    "d_model": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "mlp_hidden_size": "intermediate_size",
    "max_sequence_length": "max_position_embeddings", "weight_tying": "tie_word_embeddings",
    "rms_norm_eps": "rms_norm_eps", "rope_theta": "rope_theta", "vocab_size": "vocab_size",
}  # fmt: skip
# What the published code can switch and Llama's layers cannot: the value that Llama has, and the published default.
LLADA_FIXED: dict[str, tuple[Any, Any]] = {
    "block_type": ("llama", "sequential"), "activation_type": ("silu", "swiglu"), "layer_norm_type": ("rms", "default"),
    "rope": (True, False), "alibi": (False, False), "layer_norm_with_affine": (True, True),
    "attention_layer_norm": (False, False), "input_emb_norm": (False, False), "scale_logits": (False, False),
    "include_bias": (False, False), "include_qkv_bias": (False, False), "bias_for_layer_norm": (False, False),
    "multi_query_attention": (False, False), "block_group_size": (1, 1),
}  # fmt: skip
LLADA_DEFAULTS = {
    "n_kv_heads": None, "max_sequence_length": 1024, "weight_tying": True, "rms_norm_eps": 1e-5, "rope_theta": 10_000.0,
}  # fmt: skip
LLADA_PARTS = {
    "q_proj": "self_attn.q_proj", "k_proj": "self_attn.k_proj", "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj", "ff_proj": "mlp.gate_proj", "up_proj": "mlp.up_proj", "ff_out": "mlp.down_proj",
    "attn_norm": "input_layernorm", "ff_norm": "post_attention_layernorm",
}  # fmt: skip
LLADA_WEIGHTS = (
    (r"model\.transformer\.wte\.", "model.embed_tokens."),
    (r"model\.transformer\.ln_f\.", "model.norm."),
    (r"model\.transformer\.ff_out\.", "lm_head."),
    *((rf"model\.transformer\.blocks\.(\d+)\.{old}\.", rf"model.layers.\1.{new}.") for old, new in LLADA_PARTS.items()),
)


def _llada(said: Settings, what: str) -> Settings:
    """Return Llama's settings for LLaDA's, in which `embedding_size` is the number of rows of the embedding table."""
    for key, (needed, default) in LLADA_FIXED.items():
        value = said.get(key, default)
        if value != needed and not (needed is False and value is None):
            raise BesagError(
                f"{what} cannot be used: {key}={quoted(value)}, where besag computes LLaDA's layers with "
                f"{key}={quoted(needed)} only"
            )
    known = {**LLADA_DEFAULTS, **said}
    if known.get("mlp_hidden_size") is None and "d_model" in said:
        known["mlp_hidden_size"] = known.get("mlp_ratio", 4) * said["d_model"]
    missing = [key for key in LLADA_NAMES if key not in known]
    if missing:
        raise BesagError(f"{what} cannot be used: it lacks {', '.join(missing)}, which every LLaDA configuration has")
    settings = {new: known[old] for old, new in LLADA_NAMES.items()}
    settings["vocab_size"] = said.get("embedding_size") or said["vocab_size"]
    others = ("pad_token_id", "bos_token_id", "eos_token_id", "mask_token_id", "dtype", "torch_dtype")
    return settings | {key: said[key] for key in others if said.get(key) is not None}


# ---- models with the layers of Qwen2 or Qwen3, which see the whole sequence whatever the configuration says of windows


def _without_windows(said: Settings, _: str) -> Settings:
    windows = ("use_sliding_window", "sliding_window", "max_window_layers", "layer_types")
    return {key: value for key, value in said.items() if key not in windows}


PUBLISHED: dict[str, tuple[Format, ...]] = {  # by model type; several formats may share one
    "llada": (Format("llama", ("LLaDAModelLM",), _llada, LLADA_WEIGHTS, mask_id=126336),),
    "Dream": (Format("qwen2", ("DreamModel",), _without_windows, mask_id=151666, shift=True),),
    "a2d-llama": (Format("llama"),),
    "a2d-qwen2": (Format("qwen2", configuration=_without_windows),),
    "a2d-qwen3": (Format("qwen3", configuration=_without_windows),),
}

# tokenizer classes of published code that transformers lacks, and the family whose tokenizer reads the same files
TOKENIZERS = {"DreamTokenizer": "qwen2"}


def translated(said: Settings, what: str) -> Settings:
    """Return the settings of a config.json in terms of a family that can be built; others as they are."""
    formats = PUBLISHED.get(said.get("model_type", ""), ())
    if not formats:
        return said
    written = next(iter(said.get("architectures") or ()), None)
    for one in formats:
        if not one.architectures or written in (None, *one.architectures):
            break
    else:
        known = ", ".join(name for one in formats for name in one.architectures)
        raise BesagError(
            f"{what} cannot be used: architectures={quoted(written)}, where besag knows {known} for "
            f"model_type={quoted(said['model_type'])} (besag never runs code that comes with a model)"
        )
    family, settings = BOTH_SIDES[one.causal], one.configuration(said, what)
    settings |= {"model_type": family, "architectures": [families.masked()[family]], "is_causal": False}
    settings[SHIFT_KEY] = said.get(SHIFT_KEY, one.shift)
    mask = said.get(MASK_KEY, said.get("mask_token_id"))
    if mask is None:
        mask = one.mask_id
    if mask is not None:
        settings |= {MASK_KEY: mask, "mask_token_id": mask}
    return settings


def renamed(stored: Mapping[str, T], family: str) -> dict[str, T]:
    """Return the same values by the names that the weights have in this family; other names are kept."""
    rules = [
        (re.compile(old), new)
        for formats in PUBLISHED.values()
        for one in formats
        if BOTH_SIDES[one.causal] == family
        for old, new in one.weights
    ]
    return {_renamed(name, rules): value for name, value in stored.items()}


def _renamed(name: str, rules: list[tuple[re.Pattern[str], str]]) -> str:
    for pattern, new in rules:
        if pattern.match(name):
            return pattern.sub(new, name, count=1)
    return name


def shift_of(config: Any) -> bool:
    """Return whether the output at position i − 1 predicts the token at position i."""
    return bool(getattr(config, SHIFT_KEY, False))


def mask_id_of(config: Any) -> int | None:
    """Return the mask token that the configuration declares, for a tokenizer that names none."""
    found: int | None = getattr(config, MASK_KEY, None)
    return found
