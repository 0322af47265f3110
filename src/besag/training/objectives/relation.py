"""How two pieces of a passage belong together, told beside any objective (LinkBERT, Yasunaga et al. 2022).

    total = objective + weight · mean over passages of −log p(r | h₀),    r ∈ {contiguous, random, linked}

h₀ is the state of a passage's first token ([CLS], where the tokenizer has one) in the same pass in which hidden tokens
are predicted: the pieces are seen as the law of masks left them. A linear head reads it, which is thrown away after the
run. Passages with a single piece are not asked. Knows which kind each passage is of by `batch.relation`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from besag import noise
from besag.noise import Training
from besag.training.network.batch import Batch
from besag.training.objectives.mixture import Mixture
from besag.training.objectives.objective import Loss, Objective
from besag.training.recipe.contexts import KINDS


class RelationMixture(Mixture):
    """`logs` tells the loss of the relation, and how often the likeliest is right."""

    name = "relation"
    cite = ("yasunaga2022",)

    def __init__(self, objective: Objective, *, weight: float, seed: int = 0) -> None:
        super().__init__(objective, weight=weight, seed=seed)
        model = objective.encoder.model
        width = model.config.hidden_size
        self.head = nn.Linear(width, len(KINDS), device=model.device)
        with torch.no_grad():  # by the seed alone, whatever was drawn before
            start = noise.uniform(seed, Training.RELATION_START, np.arange(self.head.weight.numel())) * 2 - 1
            self.head.weight.copy_(torch.from_numpy(start).view_as(self.head.weight) * width**-0.5)
            self.head.bias.zero_()

    def forward(self, batch: Batch) -> Loss:
        assert batch.relation is not None
        with self.encoder.remembering() as made:
            loss: Loss = self.objective(batch)
        states, layout = made[0]
        asked = batch.relation >= 0  # (R,)
        first = layout.bounds[:-1].long().clamp(max=len(states) - 1)  # rows without a token are not asked
        logits = self.head(states[first].to(self.head.weight.dtype)).float()  # (R, 3)
        count = asked.sum().clamp(min=1)
        mean = F.cross_entropy(logits, batch.relation, ignore_index=-1, reduction="sum") / count
        right = ((logits.argmax(-1) == batch.relation) & asked).sum() / count
        return self.added(loss, batch, mean, {"relation_loss": mean, "relation_accuracy": right})
