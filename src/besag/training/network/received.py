"""How much attention each token of a batch receives, place by place.

Fast attention never forms the probabilities, so the sequences are read once more, eagerly, padded and without
gradients. Special tokens collect attention that means nothing (they are where heads look that have nothing to look at);
whoever chooses by attention leaves them out. Compiled layers are not run: compile and this do not go together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from besag.errors import BesagError
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder, padded


def attention_received(encoder: Encoder, batch: Batch) -> Tensor:  # (T,) float32
    """What each token receives from the places of its sequence, a mean over layers and heads; 1 is an equal share."""
    table, real = padded(batch.ids, batch.layout, encoder.pad_id)  # (R, L)
    training = encoder.model.training
    encoder.model.eval()
    try:
        with torch.no_grad(), _eager(encoder.model.config):
            answer = encoder.body(input_ids=table, attention_mask=real.long(), output_attentions=True)
    finally:
        encoder.model.train(training)
    attentions = getattr(answer, "attentions", None)
    if not attentions or any(one is None for one in attentions):
        raise BesagError(
            f"{type(encoder.model).__name__} does not say where it attends, so nothing can be guided by it"
        )
    total = sum(one.float().mean(1) for one in attentions) / len(attentions)  # (R, L, L)
    seen: Tensor = (total * real[:, :, None]).sum(1)  # (R, L) by the real places of its sequence
    return seen[batch.layout.row, batch.layout.column]


@contextmanager
def _eager(config: Any) -> Iterator[None]:
    before = config._attn_implementation
    config._attn_implementation = "eager"
    try:
        yield
    finally:
        config._attn_implementation = before
