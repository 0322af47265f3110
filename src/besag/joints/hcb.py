"""Hammersley-Clifford-Besag: a joint from its conditionals through a pivot x* at the first place.

    q(x, y) = A(x|y)·v(y),    v(y) ∝ B(y|x*) / A(x*|y)

Exact when the conditionals are compatible, whatever the pivot. When they are not, every pivot gives another joint, and
a→b and b→a differ: `spread` says by how much, as the mean total variation between the joints of the ten likeliest
pivots and this one.

`pivot`: "both" takes the likeliest token with both places hidden, "one" the likeliest with only the first hidden (the
text must have its own token at the second), a number is a token's id. `pivots` > 1 averages the joints of so many of
them, each weighted by its probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from besag.checks import whole_number
from besag.errors import BesagError, nearest
from besag.joints import passes
from besag.joints.candidates import MOST
from besag.joints.law import JointLaw
from besag.joints.registry import CONSTRUCTIONS, Built, Construction
from besag.joints.unaries import Unaries

COMPARED = 10  # pivots that the spread is measured over


@CONSTRUCTIONS.register
@dataclass(frozen=True)
class Pivoted(Construction):
    name = "hcb"
    title = "from a pivot (Hammersley-Clifford-Besag)"
    formula = "A(x|y) · B(y|x*) / A(x*|y) / Z"
    exact = True
    cite = ("torroba2023", "besag1974")

    pivot: Annotated[
        str | int, "the likeliest token with both places hidden, or only one of them; a token; or its id"
    ] = "both"
    pivots: Annotated[int, "how many of the likeliest pivots are averaged"] = 1

    def __post_init__(self) -> None:
        if isinstance(self.pivot, str) and self.pivot not in ("both", "one"):
            guess = nearest(self.pivot, ("both", "one"))
            raise BesagError(f"pivot={self.pivot!r}: say 'both', 'one', or the id of a token.{guess}")
        whole_number(self.pivots, "pivots", most=MOST)
        if self.pivots > 1 and not isinstance(self.pivot, str):
            raise BesagError(
                f"pivots={self.pivots} with pivot={self.pivot!r}: one pivot is given, and so many are averaged only "
                "of the likeliest"
            )

    def build(self, unaries: Unaries) -> Built:
        likely = self._likely(unaries)
        every = likely.topk(min(max(self.pivots, COMPARED), len(likely))).indices  # (j,)
        chosen = every[: self.pivots] if isinstance(self.pivot, str) else self._given(unaries)
        column = _mixture(unaries, likely, chosen)
        spread = sum(
            weight * float((_mixture(unaries, likely, one[None]).exp() - column.exp()).abs().sum()) / 2
            for one, weight in zip(every, torch.softmax(likely[every].double(), 0).tolist(), strict=True)
        )
        law = JointLaw("a", torch.zeros_like(unaries.hidden_a), column)
        pivots = " ".join(str(id) for id in unaries.ids_a[chosen.cpu().numpy()])
        return Built(law, passes.marginal_a(unaries, law), column, details={"pivot": pivots, "spread": spread})

    def _likely(self, unaries: Unaries) -> Tensor:
        """(m,) how likely each token is as a pivot, in logs."""
        if self.pivot != "one":
            return unaries.hidden_a
        if unaries.gold is None:
            raise BesagError(
                "pivot='one' shows the text's own token at the second place, and there is none among the outcomes: use "
                "pivot='both'"
            )
        return unaries.log_a[:, unaries.gold[1]]

    def _given(self, unaries: Unaries) -> Tensor:
        found = np.flatnonzero(unaries.ids_a == self.pivot)
        if not len(found):
            raise BesagError(f"the pivot {self.pivot} is not the id of one of the {len(unaries.ids_a):,} outcomes")
        return torch.as_tensor(found, device=unaries.log_a.device)


def _mixture(unaries: Unaries, likely: Tensor, pivots: Tensor) -> Tensor:
    """(k,) log v of the joint averaged over pivots."""
    column = torch.log_softmax(unaries.log_b[pivots] - unaries.log_a[pivots], 1)  # (j, k)
    return torch.logsumexp(column + torch.log_softmax(likely[pivots], 0)[:, None], 0)
