"""One pass over the plain text, nothing hidden: Σ_t log p(x_t at t | x, with x_t itself in view).

The network sees the token it is asked about, so this is no conditional probability: values are near 0 and mostly say
whether the network would keep the token. Cheap, and known under names that promise more ("wt-marginals", "PLL in one
pass"); it is labelled for what it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from besag.scores.passage import Parts, Passage, ScorePlan
from besag.scores.registry import Method, register, windows


@register
@dataclass(frozen=True)
class Unmasked(Method):
    name = "unmasked"
    title = "one pass with nothing hidden (the model sees the answer; cheap, a heuristic)"
    formula = "Σ_t log p(x_t at t | x)"
    passes = "1"
    cite = ("salazar2020",)
    aliases = ("wt_marginals",)

    def cost(self, n: int, length: int) -> int:
        return windows(n, length) * length

    def plan(self, passage: Passage) -> ScorePlan:
        return Parts.of((yield from passage.ask_shown()))
