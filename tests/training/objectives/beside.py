"""Targets beside sources, and tiny translators. Import it as `tests.training.objectives.beside`."""

from __future__ import annotations

from typing import Any

import torch
from tests import networks
from tests.training.objectives import examples
from torch import Tensor

from besag.conditionals.encoder_decoder import lift
from besag.training.network.batch import Batch, Layout, Source
from besag.training.network.translator import Translator

WORDS = networks.vocabulary("bert")
SOURCE_LENGTHS = (5, 8, 4)


def translator(family: str = "bart", decoder: str = "masked", most: int | None = None, seed: int = 0) -> Translator:
    model = networks.tiny_decoder(family, seed=seed)
    model = lift(model) if decoder == "masked" else model
    assert WORDS.mask_id is not None
    assert WORDS.pad_id is not None
    return Translator(
        model, mask_id=WORDS.mask_id, pad_id=WORDS.pad_id, special_ids=WORDS.special_ids, most=most
    ).eval()


def batch(seed: int = 0, **changes: Any) -> Batch:
    """Three targets of 7, 4 and 9 tokens, special ones counted, beside sources of 5, 8 and 4."""
    plain = examples.batch(family="bert", seed=seed, **changes)
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, WORDS.size, (sum(SOURCE_LENGTHS),), generator=generator)
    source = Source(ids, Layout.of_lengths(torch.tensor(SOURCE_LENGTHS)))
    return plain._replace(layout=plain.layout._replace(source=source))


@torch.no_grad()
def log_probs(network: Translator, inputs: Tensor, batch: Batch, causal: bool = False) -> Tensor:  # (T, V)
    """The same by transformers' own forward, one pair at a time."""
    ids, layout = batch.layout.source or (None, None)
    assert ids is not None
    assert layout is not None
    found = []
    for row in range(batch.layout.rows):
        own = inputs[batch.layout.row == row]
        seen = torch.ones(len(own), len(own), dtype=torch.bool)
        seen = seen.tril() if causal else seen
        answer = network.model(
            input_ids=ids[layout.row == row][None],
            decoder_input_ids=own[None],
            decoder_attention_mask=seen[None, None],
        )
        found.append(answer.logits[0].log_softmax(-1))
    return torch.cat(found)
