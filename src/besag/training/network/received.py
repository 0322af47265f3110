"""How much attention each token of a batch receives, for the law that hides what is attended to.

Fast attention never forms the probabilities, so a few sequences are read once more, eagerly and without gradients.
Special tokens collect attention that means nothing (they are where heads look that have nothing to look at), and are
left out of the answer. Compiled layers are not run: compile and this do not go together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from besag.errors import BesagError
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder


def attention_received(encoder: Encoder, batch: Batch, sequences: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """(n,) ids and (n,) attention received of the free tokens of the first few sequences, mean over layers and heads.

    What each token receives is a mean over the places of its sequence, times their number: 1 is an equal share.
    """
    layout = batch.layout
    rows = min(sequences, layout.rows)
    last = int(layout.bounds[rows])
    row, column = layout.row[:last], layout.column[:last]
    length = int(column.max()) + 1 if last else 1
    table = batch.ids.new_full((rows, length), encoder.pad_id)
    table[row, column] = batch.ids[:last]
    real = torch.zeros((rows, length), dtype=torch.bool, device=table.device)
    real[row, column] = True
    training = encoder.model.training
    encoder.model.eval()
    try:
        with torch.no_grad(), _eager(encoder.model.config):
            answer = encoder.body(input_ids=table, attention_mask=real.long(), output_attentions=True)
    finally:
        encoder.model.train(training)
    attentions = getattr(answer, "attentions", None)
    if not attentions or any(one is None for one in attentions):
        raise BesagError(f"{type(encoder.model).__name__} does not say where it attends, so no law can be guided by it")
    total = torch.stack([one.float().mean(1) for one in attentions]).mean(0)  # (R, L, L)
    seen = (total * real[:, :, None]).sum(1)[row, column]  # by the real places of its sequence
    free = batch.free[:last]
    return batch.ids[:last][free].cpu().numpy(), seen[free].double().cpu().numpy()


@contextmanager
def _eager(config: Any) -> Iterator[None]:
    before = config._attn_implementation
    config._attn_implementation = "eager"
    try:
        yield
    finally:
        config._attn_implementation = before
