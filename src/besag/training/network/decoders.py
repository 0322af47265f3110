"""New encoder-decoders, and those that are trained on: their sizes, their special tokens, their mask, lifted or not.

Knows what BART, Marian, T5 and their kin call things. `networks.py` makes the network itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from besag.conditionals.configuration import decoder_of
from besag.conditionals.encoder_decoder import lift, put_back
from besag.errors import BesagError
from besag.vocabulary import Vocabulary

# of a new network, where model.config does not say: whatever of these the family knows
SIZES = {
    "d_model": 256, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024,
    "num_layers": 4, "num_decoder_layers": 4, "num_heads": 4, "d_kv": 64, "d_ff": 1024,
}  # fmt: skip
MASK = "<mask>"


def usual(width: object) -> dict[str, float]:
    """What a new network is given where the recipe does not say; `width`: its d_model, if that is said.

    First weights have the variance 1 / d_model, under which states keep their size. At the 0.02 that these families
    begin from, a narrow decoder takes many times as long to find its source.
    """
    known = width if isinstance(width, int) and width > 0 else SIZES["d_model"]
    return {**SIZES, "init_std": float(known) ** -0.5}


def special_tokens(vocabulary: Vocabulary) -> dict[str, Any]:
    """Where a decoder begins and ends: with what the tokenizer puts around a text; else it begins with padding."""
    [example] = vocabulary.encode([vocabulary.mask_token or "a"])
    added = np.flatnonzero(example.special)
    inside = np.flatnonzero(~example.special)
    head = [int(example.ids[place]) for place in added if place < inside[0]]
    tail = [int(example.ids[place]) for place in added if place > inside[-1]]
    if not tail:
        raise BesagError(
            "this tokenizer puts no token after a text, so a decoder could not say where a target ends: train one "
            "(tokenizer.path = nothing), or name another"
        )
    return {
        "pad_token_id": vocabulary.pad_id,
        "bos_token_id": head[0] if head else None,
        "eos_token_id": tail[-1],
        "decoder_start_token_id": head[0] if head else vocabulary.pad_id,
        "forced_eos_token_id": None,
        "forced_bos_token_id": None,
    }


def turned(model: Any, decoder: str) -> Any:
    """The network with its causal mask lifted or as it was. One that was trained to see both sides stays so."""
    if decoder == "masked":
        return lift(model)
    if decoder == "causal":
        if decoder_of(model.config) == "masked":
            raise BesagError(
                'model.start has a decoder that sees both sides, and model.decoder = "causal": what it has learned to '
                'read is not there from the left. Set model.decoder = "masked"'
            )
        return put_back(model)
    return model


def with_mask(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary, with a mask token added where it has none."""
    if vocabulary.mask_id is not None:
        return vocabulary
    vocabulary.tokenizer.add_special_tokens({"mask_token": MASK})
    return Vocabulary(vocabulary.tokenizer)
