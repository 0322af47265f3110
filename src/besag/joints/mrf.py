"""The Markov random field of the raw logits: log q(x, y) = logit_a(x|y) + logit_b(y|x) − log Z.

The "MRF" of the paper. Logits are conditionals up to a constant for each context, so this depends on the constants
that the network happens to produce. Wrong even for compatible conditionals; kept because it is what BERT was once said
to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from besag.joints import passes
from besag.joints.law import JointLaw
from besag.joints.registry import CONSTRUCTIONS, Built, Construction
from besag.joints.unaries import Unaries


@CONSTRUCTIONS.register
@dataclass(frozen=True)
class LogitField(Construction):
    name = "mrf"
    title = "Markov random field of the logits"
    formula = "exp(logit_a(x|y) + logit_b(y|x)) / Z"
    exact = False
    cite = ("torroba2023", "wang2019")

    def build(self, unaries: Unaries) -> Built:
        return normalised(unaries, JointLaw("product", unaries.energy_b, unaries.energy_a))


def normalised(unaries: Unaries, law: JointLaw) -> Built:
    """A law divided by the sum over its cells, with its marginals."""
    log_u, log_v = passes.marginals(unaries, law)
    log_z = torch.logsumexp(log_u.double(), 0).to(log_u.dtype)
    return Built(law.scaled(-log_z), log_u - log_z, log_v - log_z)
