"""Teacher forcing: −Σ_i log p(x_i | x_<i, s), the end of the target included. What a left-to-right decoder learns.

The decoder is given its start token and the target up to the last token but one. Where the tokenizer puts the start
token before a text itself, it is not asked for. `masks` is False: whatever law the recipe names is not used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from besag.training.network.batch import Batch, Layout
from besag.training.objectives.mdlm import per_token, predictions
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective


@OBJECTIVES.register
class CausalTarget(Objective):
    name = "causal"
    title = "the next token of a target, beside its source (teacher forcing)"
    cite = ("sutskever2014",)
    masks = False
    translates = True

    def forward(self, batch: Batch) -> Loss:
        start: Any = getattr(self.encoder, "start", None)
        inputs, target, layout = forced(batch.ids, batch.layout, start)
        states = self.encoder.states(inputs, layout, causal=True)  # (T, H)
        if not self.encoder.watched:
            losses = self.encoder.losses(states, target)
            return Loss(per_token(losses.mean(), batch, 1), {})
        logits = self.encoder.logits(states)
        losses = self.encoder.nll(logits, target)
        return Loss(per_token(losses.mean(), batch, 1), {}, predictions(self.encoder, target, losses, logits))


def forced(ids: Tensor, layout: Layout, start: int | None) -> tuple[Tensor, Tensor, Layout]:
    """(T,) what the decoder is given, (T,) what it is asked for there, and how both lie. A network without a start of
    its own begins from the first token of each sequence."""
    first = ids[layout.bounds[:-1].long()]  # (R,)
    begin = first if start is None else torch.full_like(first, start)
    asked = ~((layout.column == 0) & (ids == begin[layout.row]))
    target = ids[asked]
    length = torch.bincount(layout.row[asked], minlength=layout.rows)
    kept = Layout.of_lengths(length, layout.longest)._replace(source=layout.source)
    inputs = target.roll(1)
    inputs[kept.bounds[:-1].long()] = begin
    return inputs, target, kept
