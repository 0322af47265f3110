"""The product of the conditionals: log q(x, y) = log A(x|y) + log B(y|x) − log Z.

The "MRF_L" of the paper. It counts the dependence twice: for compatible conditionals q ∝ p(x,y)²/(p(x)p(y)), which is
p only where the places are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from besag.joints.law import JointLaw
from besag.joints.mrf import normalised
from besag.joints.registry import CONSTRUCTIONS, Built, Construction
from besag.joints.unaries import Unaries


@CONSTRUCTIONS.register
@dataclass(frozen=True)
class LocalField(Construction):
    name = "mrf_local"
    title = "product of the conditionals"
    formula = "A(x|y) · B(y|x) / Z"
    exact = False

    def build(self, unaries: Unaries) -> Built:
        law = JointLaw("product", torch.zeros_like(unaries.hidden_a), torch.zeros_like(unaries.hidden_b))
        return normalised(unaries, law)
