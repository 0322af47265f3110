"""One tiny random network of each family, with the tokenizer of its layout, for every test that needs a network.

Weights are drawn wide (standard deviation 0.5), so that answers which should differ do so by far more than rounding.
Import it as `tests.networks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from tests import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    PreTrainedTokenizerFast,
)

import besag.family  # noqa: F401 - known to transformers from here on
from besag.conditionals.transformer import Transformer
from besag.vocabulary import Vocabulary

MASKED_FAMILIES = (
    "bert", "roberta", "xlm-roberta", "xlm-roberta-xl", "distilbert", "albert", "electra", "mpnet", "deberta-v2",
    "modernbert", "esm", "camembert", "besag", "neobert", "ltg_bert", "gpt_bert", "llada_moe", "llada2_moe",
)  # fmt: skip
BYTES, SENTENCE_PIECES, RESIDUES = "bytelevel-trimmed", "unigram", "character-slow"
TOKENIZERS = {  # the families not named here have BERT's word pieces
    "roberta": BYTES, "longformer": BYTES, "mpnet": BYTES, "data2vec-text": BYTES, "modernbert": "bytelevel-untrimmed",
    "besag": "bytelevel-untrimmed",
    "xlm-roberta": SENTENCE_PIECES, "xlm-roberta-xl": SENTENCE_PIECES, "camembert": SENTENCE_PIECES, "esm": RESIDUES,
}  # fmt: skip
SHAPE: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
    "max_position_embeddings": 40, "initializer_range": 0.5,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {  # what a family calls otherwise, or needs besides
    "albert": {"embedding_size": 16},
    "electra": {"embedding_size": 16},
    "distilbert": {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 2},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2},
    "esm": {"position_embedding_type": "rotary", "token_dropout": True, "emb_layer_norm_before": False},
    "longformer": {"attention_window": [4, 4]},
    "besag": {"mix_every": 1},
    "llada2_moe": {
        "num_experts": 6, "num_experts_per_tok": 2, "n_group": 3, "topk_group": 2, "moe_intermediate_size": 24,
        "head_dim": 16, "num_key_value_heads": 1, "first_k_dense_replace": 1, "besag_block_length": None,
    },
    "llada_moe": {"num_experts": 4, "num_experts_per_tok": 2},
    "gpt_bert": {"position_bucket_size": 6, "besag_shift": False},
    "ltg_bert": {"position_bucket_size": 6},
    "neobert": {"embedding_init_range": 0.8, "decoder_init_range": 0.8},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0},
    "funnel": {"block_sizes": [1, 1], "d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 48, "initializer_std": 0.5,
               "num_decoder_layers": 1, "num_hidden_layers": ..., "hidden_size": ..., "num_attention_heads": ...},
    "xlm": {"emb_dim": 32, "n_layers": 2, "n_heads": 2, "init_std": 0.5, "embed_init_std": 0.5, "n_langs": 1,
            "hidden_size": ..., "num_hidden_layers": ..., "num_attention_heads": ...},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 40, "intermediate_size": ...,
             "hidden_size": ..., "num_hidden_layers": ..., "num_attention_heads": ..., "max_position_embeddings": ...},
}  # fmt: skip


def end_of_text_tokenizer() -> PreTrainedTokenizerFast:
    """GPT-2's layout: bytes and one special token, no mask, no padding, nothing added around a text."""
    end = "<|endoftext|>"
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: index for index, letter in enumerate([*letters, end])}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=end, eos_token=end, unk_token=end)


@cache
def vocabulary(family: str) -> Vocabulary:
    if family == "gpt2":
        return Vocabulary(end_of_text_tokenizer())
    return Vocabulary(tokenizers.build(TOKENIZERS.get(family, "wordpiece-uncased")))


def configuration(family: str, vocab_size: int | None = None, **changes: Any) -> Any:
    words = vocabulary(family)
    known: Mapping[str, Any] = {
        **SHAPE,
        "vocab_size": vocab_size or words.size,
        "pad_token_id": words.pad_id,
        "mask_token_id": words.mask_id,
        "bos_token_id": words.tokenizer.bos_token_id,
        "eos_token_id": words.tokenizer.eos_token_id,
        "cls_token_id": words.tokenizer.cls_token_id,
        "sep_token_id": words.tokenizer.sep_token_id,
        **SHAPES.get(family, {}),
        **changes,
    }
    return CONFIG_MAPPING[family](**{name: value for name, value in known.items() if value is not ...})


def tiny(family: str, vocab_size: int | None = None, seed: int = 0, **changes: Any) -> Any:
    """A random network of two layers; by default its vocabulary is that of `vocabulary(family)`."""
    config = configuration(family, vocab_size, **changes)
    auto = AutoModelForCausalLM if family == "gpt2" else AutoModelForMaskedLM
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return awake(auto.from_config(config))


@torch.no_grad()
def awake(network: Any) -> Any:
    """The same network, with random gates and layer weights: new ones change nothing."""
    for name, weight in network.named_parameters():
        if ".gate." in name or ".mixes." in name or ".alphas." in name:
            weight.normal_(std=0.5)
    return network


class Given(Transformer):
    """Stands for an encoder-decoder whose decoder sees both sides: two BERTs, one with attention to the other."""

    max_source: int | None = 12

    def __init__(self, seed: int = 0) -> None:
        decoder = tiny("bert", seed=seed, is_decoder=True, add_cross_attention=True)
        decoder.config.is_decoder = False  # built with attention to an encoder; from here on it sees both sides
        for layer in decoder.bert.encoder.layer:
            layer.attention.self.is_causal = False
        super().__init__(decoder, vocabulary("bert"), "given")
        self.encoder = tiny("bert", seed=seed + 1).bert.eval()
        self.encoded: list[Any] = []  # the ids of every batch of sources

    def source_ids(self, texts: Sequence[str]) -> list[Any]:
        return [encoded.ids for encoded in self.vocabulary.encode(texts)]

    def encode(self, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        self.encoded.append(ids.tolist())
        return self.encoder(ids, attention_mask=torch.ones_like(ids) if mask is None else mask).last_hidden_state


# ---- encoder-decoders

DECODER_FAMILIES = ("bart", "marian", "t5")
LAYERS = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 40, "init_std": 0.5,
    "forced_eos_token_id": None,
}  # fmt: skip
T5_LAYERS = {
    "d_model": 32, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "d_kv": 16, "d_ff": 48,
    "max_position_embeddings": 40, "initializer_factor": 3.0,
}  # fmt: skip


def tiny_decoder(family: str, words: Vocabulary | None = None, seed: int = 0, **changes: Any) -> Any:
    """A random encoder-decoder of two layers each, its decoder from the left; by default for the words of "bert"."""
    words = vocabulary("bert") if words is None else words
    known = words.tokenizer
    ids = {
        "vocab_size": words.size, "pad_token_id": words.pad_id, "bos_token_id": known.cls_token_id,
        "eos_token_id": known.sep_token_id, "decoder_start_token_id": known.cls_token_id,
    }  # fmt: skip
    config = CONFIG_MAPPING[family](**{**(T5_LAYERS if family == "t5" else LAYERS), **ids, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return AutoModelForSeq2SeqLM.from_config(config).eval()
