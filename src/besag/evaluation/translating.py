"""What a translator is watched by while it trains: the loss of held-out pairs, asked as they are in training.

    heldout_loss      of the objective, in nats a target token; without smoothed labels and dropout
    length_accuracy   of a masked decoder: how often the likeliest length is the right one

The same pairs and masks at every visit, in every run. Knows objectives. How well it translates is a suite's affair.
"""

from __future__ import annotations

from itertools import count, takewhile
from typing import Any

import numpy as np
import torch

from besag import masks
from besag.training.data.assembly import Parts, Template
from besag.training.data.clock import Clock
from besag.training.data.pair_batches import PairBatches, PairPlan
from besag.training.network.batch import Batch

SEED = 0  # of all of it, whatever the recipe's is


class TranslationMonitor:
    """Made before a run from what was built, called during it: `monitor(network, step)` is a number for each name.

    `evaluation.sentences` says how many pairs are looked at, as many of each length as there are on the whole.
    """

    def __init__(self, built: Any) -> None:
        self.built = built
        self.batches: list[Batch] = []
        most = built.recipe.evaluation.sentences
        if built.valid_pairs is None or not most:
            return
        special = Template(built.vocabulary).size
        plan = PairPlan(built.valid_pairs, built.recipe.data, special=special, seed=SEED)
        dataset = PairBatches(plan, built.vocabulary, self._masking(), Clock(steps=1), seed=SEED)
        whole = [dataset.parts(index) for index in takewhile(lambda at: plan.where(at) < 1, count())]
        ends = np.cumsum([0, *(len(parts.passages.draw) for parts in whole)])  # (B + 1,) pairs up to each batch
        taken = np.diff(ends * min(most, ends[-1]) // ends[-1]).tolist()  # of each its share: batches are of one length
        self.batches = [dataset.mask(_first(parts, some)) for parts, some in zip(whole, taken, strict=True) if some]

    def __call__(self, model: Any, step: int = 0) -> dict[str, float]:
        if not self.batches:
            return {}
        built, encoder = self.built, self.built.encoder
        smoothing, encoder.smoothing = encoder.smoothing, 0.0
        objective, training = built.objective.objective, built.objective.training
        built.objective.eval()
        try:
            with torch.no_grad(), built.autocast():
                return self._numbers(objective, encoder)
        finally:
            encoder.smoothing = smoothing
            built.objective.train(training)

    def _numbers(self, objective: Any, encoder: Any) -> dict[str, float]:
        device = next(encoder.parameters()).device
        total = weight = right = rows = 0.0
        for batch in self.batches:
            there = batch.to(device)
            with encoder.reading_once():
                total += float(objective(there).total)
                if encoder.length_head is not None:
                    size = there.layout.bounds.diff() - Template(self.built.vocabulary).size
                    law = encoder.length_head(*encoder.read(there.layout.source))
                    right += float((law.argmax(-1) + 1 == size).sum())
            weight, rows = weight + float(batch.weight.sum()), rows + len(batch.draw)
        lengths = {} if encoder.length_head is None else {"length_accuracy": right / rows}
        return {"heldout_loss": total / max(weight, 1e-9), **lengths}

    def _masking(self) -> masks.Masking:
        """That of the run, but for laws that learn: places are hidden uniformly, at rates that are drawn uniformly."""
        causal = self.built.recipe.model.decoder == "causal"
        rate = masks.rate_named("constant", 1.0) if causal else masks.rate_named("uniform", 0.5)
        ordinary = masks.ordinary_ids(self.built.vocabulary.size, self.built.vocabulary.special_ids)
        return masks.Masking(
            masks.law("uniform"), rate, masks.Replacement(self.built.encoder.mask_id, ordinary=ordinary)
        )


def _first(parts: Parts, count: int) -> Parts:
    """The first so many pairs of a batch."""
    assert parts.source is not None
    return parts._replace(passages=parts.passages.first(count), source=parts.source.first(count))
