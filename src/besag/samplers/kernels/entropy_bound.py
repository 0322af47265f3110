"""Entropy-bounded decoding: as many hidden places in one pass as a bound on what that loses allows.

    H_i = the entropy of the model's row at place i, given what is shown
    S   = the largest set of lowest-entropy places with  Σ_{i∈S} H_i − max_{i∈S} H_i ≤ bound,  at least one place
    x_i ~ p(x_i | what is shown)     for all i ∈ S, independently

What a product of rows loses is the total correlation of the set,

    TC(S) = Σ_{i∈S} H_i − H(x_S) = KL(p(x_S | shown) ‖ Π_{i∈S} p(x_i | shown)),

and a joint entropy is at least the largest of the single ones, so TC(S) ≤ Σ H_i − max H_i. If the conditionals are
those of a joint law p, every step loses at most `bound` nats, and KL(p ‖ the law of the kernel) is at most `bound`
times the expected number of steps (the last step among them only if it takes more than one place). With `bound=0` it
draws from p exactly: one place at a time, lowest entropy first, together with places that are certain already.

The bound holds whatever the dependence is, so it is loose: two places of seven nats each never go together, though
they may be independent. `adaptive` estimates the dependence instead, and bounds nothing.

Entropies are those of the law that is drawn from: temperature, top_k, top_p and allowed tokens come first, and with
any of these the statement is about the product and the joint that these conditionals would have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from besag.errors import BesagError, quoted
from besag.samplers.drawing import COLDEST
from besag.samplers.kernel import State, register
from besag.samplers.kernels.decoding import Chooser


@register
@dataclass(frozen=True)
class EntropyBound(Chooser):
    name = "entropy_bound"
    title = "as many places at a time as a bound on their joint entropy allows"
    formula = "x_i ~ p(x_i | all that is shown) for all i ∈ S, Σ_S H_i − max_S H_i ≤ bound"
    law = "the joint, if the conditionals have one, but for at most `bound` nats of KL a step; exactly so for bound=0"
    passes = "1 a step, at most n for n hidden places"
    ends = True
    cite = ("benhamu2025",)
    measure = "entropy"

    bound: Annotated[float, "most nats that a set of places may lose"] = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.bound <= 1 / COLDEST:
            raise BesagError(
                f"bound={quoted(self.bound)}: give nats, at least 0; 0 draws one uncertain place at a time"
            )
        super().__post_init__()

    def choose(self, state: State, asked: Tensor, turn: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        chosen, loss = within(turn, asked, float(self.bound))
        return chosen, {"loss_bound": loss}


def within(entropy: Tensor, among: Tensor, bound: float) -> tuple[Tensor, Tensor]:
    """(C, L) the places that may go together, of `among` (C, L), and (C,) Σ H − max H of them.

    Of equal entropies the first place comes first. Sorted, the largest of a prefix is its last, so the loss of the
    first k places is the sum of the first k − 1 entropies.
    """
    # An answer that is NaN is reported by `Engine.check`; it must not keep a place from ever being taken.
    height = torch.where(among, entropy.nan_to_num(), torch.inf)
    height, order = height.sort(dim=1, stable=True)  # (C, L)
    before = torch.cat([torch.zeros_like(height[:, :1]), height[:, :-1].cumsum(1)], 1)
    taken = (height < torch.inf) & (before <= bound)  # (C, L) in that order
    return torch.zeros_like(among).scatter(1, order, taken), torch.where(taken, before, 0).amax(1)
