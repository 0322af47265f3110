"""The models that are raced: the embedded one, and published shapes with random weights.

Knows how to build a network and a tokenizer that fits it; knows no contender. What a scorer costs depends on the shape
of the network, the width of the vocabulary and the number of tokens, not on what the weights say. The tokenizers are of
the shape's own kind: trained on pseudo-English, so that rare words are split as they are by the published ones, then
filled up to the published width with pieces that never occur.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers import models as pieces
from transformers import (
    AutoModelForMaskedLM,
    BertConfig,
    ModernBertConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLMRobertaConfig,
)

import besag
import sentences

TRAINED_PIECES = 8000
PRINTABLE = [chr(code) for code in range(33, 127)]


BERT_SPECIALS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
ROBERTA_SPECIALS = {
    "cls_token": "<s>",
    "pad_token": "<pad>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}


class Shape(NamedTuple):
    config: Callable[[], PreTrainedConfig]
    untrained: Callable[[dict[str, str]], tuple[Tokenizer, trainers.Trainer]]
    specials: dict[str, str]  # in the order of their ids


def _bert() -> BertConfig:
    return BertConfig(vocab_size=30522)


def _roberta() -> RobertaConfig:
    return RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1)


def _xlmr() -> XLMRobertaConfig:
    return XLMRobertaConfig(vocab_size=250002, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1)


def _modernbert() -> ModernBertConfig:
    special = {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    return ModernBertConfig(vocab_size=50368, **special)


def build(name: str, *, tiny: bool = False) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A network in float32 on the CPU, and its tokenizer. `tiny` keeps the kind and the vocabulary and little else."""
    if name == "embedded":
        lm = besag.load(device="cpu", dtype="float32")
        return lm.model, lm.tokenizer
    config = SHAPES[name].config()
    if tiny:
        config.num_hidden_layers, config.hidden_size, config.num_attention_heads = 2, 64, 4
        config.intermediate_size = 128
        if isinstance(config, ModernBertConfig):
            config.layer_types = config.layer_types[:2]
    torch.manual_seed(0)
    return AutoModelForMaskedLM.from_config(config, dtype=torch.float32).eval(), _tokenizer(name, config.vocab_size)


def _tokenizer(name: str, width: int) -> PreTrainedTokenizerFast:
    """A tokenizer of the shape's kind with exactly `width` pieces."""
    _, untrained, specials = SHAPES[name]
    made, trainer = untrained(specials)
    lengths = np.random.default_rng(1).integers(5, 20, size=8000)
    made.train_from_iterator(sentences.pseudo_english(lengths, seed=1), trainer)
    first, last = specials["cls_token"], specials["sep_token"]
    made.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(token, made.token_to_id(token)) for token in (first, last)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=_fill(made, width),
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
        **specials,
    )


def _fill(made: Tokenizer, width: int) -> Tokenizer:
    state = json.loads(made.to_str())
    vocabulary = state["model"]["vocab"]
    for number in range(len(vocabulary), width):
        if isinstance(vocabulary, dict):
            vocabulary[f"[unused{number}]"] = number
        else:
            vocabulary.append([f"[unused{number}]", -99.0])
    return Tokenizer.from_str(json.dumps(state))


def _wordpiece(specials: dict[str, str]) -> tuple[Tokenizer, trainers.Trainer]:
    made = Tokenizer(pieces.WordPiece(unk_token=specials["unk_token"]))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    return made, trainers.WordPieceTrainer(
        vocab_size=TRAINED_PIECES,
        special_tokens=list(specials.values()),
        initial_alphabet=PRINTABLE,
        show_progress=False,
    )


def _byte_pairs(specials: dict[str, str]) -> tuple[Tokenizer, trainers.Trainer]:
    made = Tokenizer(pieces.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made, trainers.BpeTrainer(
        vocab_size=TRAINED_PIECES,
        special_tokens=list(specials.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )


def _unigram(specials: dict[str, str]) -> tuple[Tokenizer, trainers.Trainer]:
    made = Tokenizer(pieces.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return made, trainers.UnigramTrainer(
        vocab_size=TRAINED_PIECES,
        special_tokens=list(specials.values()),
        unk_token=specials["unk_token"],
        initial_alphabet=PRINTABLE,
        show_progress=False,
    )


SHAPES = {
    "bert-base": Shape(_bert, _wordpiece, BERT_SPECIALS),
    "roberta-base": Shape(_roberta, _byte_pairs, ROBERTA_SPECIALS),
    "xlmr-base": Shape(_xlmr, _unigram, ROBERTA_SPECIALS),
    "modernbert-base": Shape(_modernbert, _byte_pairs, BERT_SPECIALS),
}
