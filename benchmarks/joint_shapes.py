"""What joints are timed on: the embedded model, and a published shape with random weights, drawn and sharpened.

Knows how to build networks and to find texts with two places in them; knows no construction and no clock.

Weights as BERT draws them say almost nothing: every conditional is nearly uniform, and a place hardly feels another. So
they are also sharpened: queries and keys are scaled, so that attention picks places out (about 0.3 nats of mutual
information between neighbours), and the head, until a conditional has 3.5 nats of entropy, as a trained model's have on
text. The head has weights of its own, so that scaling it leaves the embeddings alone; that changes no cost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoModelForMaskedLM, BertConfig

import sentences
import shapes
from besag.joints.asking import Candidates

ENTROPY = 3.5  # nats of a sharpened conditional
ATTENTION = 6.0  # times the drawn queries and keys


class Shape(NamedTuple):
    config: BertConfig | None  # None is the embedded model
    tokens: int  # of the text, special ones counted
    candidates: Candidates = "all"


class Pair(NamedTuple):
    text: str
    positions: tuple[int, int]


SMALL = {  # as narrow, weights must be larger to say as much
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "initializer_range": 0.1,
}
SHAPES = {
    "bert-base": Shape(BertConfig(vocab_size=28_996, tie_word_embeddings=False), 20),
    "embedded": Shape(None, 15),
    "candidates": Shape(None, 15, candidates=200),
    "tiny": Shape(BertConfig(vocab_size=300, tie_word_embeddings=False, **SMALL), 20),
}


def build(name: str, count: int) -> Iterator[tuple[str, Any, Any, list[Pair]]]:
    """What the weights are, the network in float32 on the CPU, its tokenizer, and so many pairs."""
    shape = SHAPES[name]
    if shape.config is None:
        model, tokenizer = shapes.build("embedded")
        yield "trained", model, tokenizer, draw(tokenizer, shape.tokens, count)
        return
    width = shape.config.vocab_size
    shapes.TRAINED_PIECES = min(shapes.TRAINED_PIECES, width)
    tokenizer = shapes._tokenizer("bert-base", width)
    pairs = draw(tokenizer, shape.tokens, count)
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(shape.config, dtype=torch.float32).eval()
    yield "random", model, tokenizer, pairs
    sharpen(model, tokenizer, pairs[0].text)
    yield "sharpened random", model, tokenizer, pairs


@torch.inference_mode()
def sharpen(model: Any, tokenizer: Any, text: str) -> None:
    """Let places matter to each other, then scale the head until its conditionals have ENTROPY nats on this text."""
    for name, weight in model.named_parameters():
        if name.endswith(("query.weight", "key.weight")):
            weight.mul_(ATTENTION)
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    asked = torch.arange(1, ids.shape[1] - 1)
    each = torch.arange(len(asked))
    masked = ids.repeat(len(asked), 1)
    masked[each, asked] = tokenizer.mask_token_id
    logits = model(masked, attention_mask=torch.ones_like(masked)).logits[each, asked]  # (n, V)
    low, high = 1.0, 1000.0
    for _ in range(40):
        middle = (low * high) ** 0.5
        entropy = torch.distributions.Categorical(logits=middle * logits).entropy().mean()
        low, high = (middle, high) if entropy > ENTROPY else (low, middle)
    model.get_output_embeddings().weight.mul_(low)


def draw(tokenizer: Any, tokens: int, count: int) -> list[Pair]:
    """Texts of exactly so many tokens, none unknown, and two places of each, any two alike."""
    noise, found = np.random.default_rng(0), {}
    for seed in range(40):
        for text in sentences.draw("snli", 500, seed=seed):
            ids = tokenizer(text)["input_ids"]
            if len(ids) == tokens and tokenizer.unk_token_id not in ids and text not in found:
                a, b = noise.choice(np.arange(1, tokens - 1), size=2, replace=False).tolist()
                found[text] = Pair(text, (a, b))
            if len(found) == count:
                return list(found.values())
    sys.exit(f"only {len(found)} texts of {tokens} tokens were found, {count} are needed")
