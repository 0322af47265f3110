"""Heads of besag's own family, for transformers: importing this makes them known to its Auto classes.

label of a text:  linear(mean over its tokens of norm(x_n))         label of a token:  linear(norm(x_n))
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification
from transformers.modeling_outputs import SequenceClassifierOutput, TokenClassifierOutput

from besag.family.configuration import BesagConfig
from besag.family.network import BesagModel, BesagPreTrainedModel


class BesagForTokenClassification(BesagPreTrainedModel):  # type: ignore[no-untyped-call]
    def __init__(self, config: BesagConfig) -> None:
        super().__init__(config)
        self.model = BesagModel(config)
        self.classifier = nn.Linear(config.hidden_size, int(config.num_labels or 0))
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any) -> TokenClassifierOutput:
        states = self.model(input_ids, attention_mask, **kwargs)[0]  # (N, L, H)
        return TokenClassifierOutput(logits=self.classifier(states))


class BesagForSequenceClassification(BesagForTokenClassification):  # type: ignore[no-untyped-call]
    def forward(  # type: ignore[override]
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> SequenceClassifierOutput:
        states = self.model(input_ids, attention_mask, **kwargs)[0]  # (N, L, H)
        if attention_mask is None:
            return SequenceClassifierOutput(logits=self.classifier(states.mean(1)))
        share = attention_mask.to(states.dtype)[:, :, None]
        return SequenceClassifierOutput(logits=self.classifier((states * share).sum(1) / share.sum(1)))


AutoModelForSequenceClassification.register(BesagConfig, BesagForSequenceClassification)
AutoModelForTokenClassification.register(BesagConfig, BesagForTokenClassification)
