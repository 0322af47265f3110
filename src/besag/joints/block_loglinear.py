"""The log-linear joint of any number of places: from each conditional what it says of its place, averaged; closed form.

A function of k places is a sum of effects, one for every set T of places: the part that depends on just those, and
whose mean over each of them is 0. A conditional log c_i = log p(x_i | x_−i) of a joint p has the effects of log p for
every T that contains i; what it has for the others is its normaliser. So

    log q = Σ_T  mean over i in T of the effect T of log c_i,        normalised,

which is log p where the conditionals are those of p, and else minimises Σ_i Σ_x (log c_i(x) − log q(x) − α_i(x_−i))²
over q and all α_i. With two places this is `loglinear` with uniform weights. An average by 1/|T| is an integral of
t^(|T|−1) from 0 to 1, and the effects weighted by t^|T| are a product of one easy step an axis: so a Gauss rule of
⌈k/2⌉ points gives it exactly, in so many readings of each table, and nothing is iterated.

The misfit is the size of independent noise on every log-conditional that would leave as much disagreement.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from besag.errors import BesagError
from besag.joints.block_ag import Solved
from besag.results.status import Status


def own_share(log_c: Tensor, place: int) -> Tensor:
    """Σ over T that contain the place of effect_T(log c) / |T|, (|C_1|, …, |C_k|)."""
    own = log_c - log_c.mean(place, keepdim=True)
    share = torch.zeros_like(own)
    nodes, weights = np.polynomial.legendre.leggauss((log_c.ndim + 1) // 2)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        shrunk = own
        for axis in range(log_c.ndim):
            if axis != place:
                shrunk = torch.lerp(shrunk.mean(axis, keepdim=True).expand_as(own), shrunk, float(node))
        share += float(weight) * shrunk
    return share


class Effects:
    """Takes log c_i of one place after the other; keeps their shares."""

    def __init__(self) -> None:
        self.log_q: Tensor | float = 0.0
        self.squares = 0.0  # Σ of what each conditional says of its own place

    def add(self, place: int, log_c: Tensor) -> None:
        if not bool(log_c.isfinite().all()):
            raise BesagError("loglinear fits logarithms, and a conditional of the block is 0: ag takes it")
        self.log_q = self.log_q + own_share(log_c, place)
        self.squares += _of_its_own(log_c, place)

    def solve(self) -> Solved:
        assert isinstance(self.log_q, Tensor)
        log_q, sizes = self.log_q, self.log_q.shape
        cells = math.prod(sizes)
        free = sum((size - 1) * (cells // size) for size in sizes) - cells + 1
        left = self.squares - sum(_of_its_own(log_q, place) for place in range(len(sizes)))
        misfit = math.sqrt(max(0.0, left) / free) if free else 0.0
        return Solved(log_q - log_q.flatten().logsumexp(0), Status.OK, {"misfit": misfit})


def _of_its_own(log_c: Tensor, place: int) -> float:
    return float((log_c - log_c.mean(place, keepdim=True)).square().sum())
