"""The chain rule of a causal model: log p(x) = Σ_t log p(x_t | x_<t), one pass. For comparison with masked models.

The tokenizer's own start token stands in front; where it adds none, the model's start (or end) token does. No end token
is scored, so this is the probability that a text *begins* so: over texts of one length it sums to one.
"""

from __future__ import annotations

from dataclasses import dataclass

from besag.scores.passage import Parts, Passage, ScorePlan
from besag.scores.registry import FIXED_LENGTH, Method, register, windows


@register
@dataclass(frozen=True)
class CausalChain(Method):
    name = "causal"
    title = "left-to-right log-probability under a causal model"
    formula = "Σ_t log p(x_t | x_<t)"
    passes = "1"
    normalised = FIXED_LENGTH
    sees = "left"
    cite = ("shannon1948",)
    aliases = ("clm", "autoregressive")

    def cost(self, n: int, length: int) -> int:
        return windows(n, length) * (length + 1)  # a start token may be added

    def plan(self, passage: Passage) -> ScorePlan:
        return Parts.of((yield from passage.ask_shown()))
