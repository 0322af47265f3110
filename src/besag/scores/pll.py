"""Pseudo-log-likelihood: PLL(x) = Σ_t log p(x_t | x_∖t), each token hidden alone (Besag 1975; Salazar et al. 2020).

Not a probability: tokens vouch for each other, so what they share is counted more than once, and exp(PLL) summed over
all sentences is no particular number, even for conditionals of a true joint law. It ranks sentences well. Inside a word
of several pieces the neighbours give a piece away, so rare words look too likely: see `word_l2r`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.scores.passage import Parts, Passage, ScorePlan
from besag.scores.registry import Method, register


@register
@dataclass(frozen=True)
class PseudoLogLikelihood(Method):
    name = "pll"
    title = "pseudo-log-likelihood: every token given all others"
    formula = "Σ_t log p(x_t | x_∖t)"
    passes = "n"
    cite = ("salazar2020", "besag1975")
    aliases = ("original", "pseudo_log_likelihood")

    def cost(self, n: int, length: int) -> int:
        return n * length

    def plan(self, passage: Passage) -> ScorePlan:
        everywhere = np.arange(passage.size)
        return Parts.of((yield from passage.ask_each(lambda index: index[:, None] == everywhere)))
