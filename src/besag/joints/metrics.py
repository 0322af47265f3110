"""How good a joint is: at the text's own tokens (perplexity), and as a summary of the conditionals (divergence).

    P-NLL = −½ log q(x, y)                       U-NLL = −½ [log q(x|y) + log q(y|x)]        at the text's own x, y
    gold  = ½ [D(A(·|y), q(·|y)) + D(B(·|x), q(·|x))]                                        at the text's own contexts
    all   = the mean of D over all contexts of both places

with D the forward KL(model ‖ q), the reverse, and the Jensen-Shannon divergence. All in nats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from besag.joints import passes
from besag.joints.registry import Built
from besag.joints.unaries import Unaries


class Metrics(NamedTuple):
    """Those at the text's own tokens are nan where it has none (a mask stands there), and the rank is 0."""

    pair_nll: float
    unary_nll: float
    gold_forward: float
    gold_reverse: float
    gold_jsd: float
    all_forward: float
    all_reverse: float
    all_jsd: float
    entropy: float
    mutual_information: float
    rank: int  # of the text's own pair among all pairs; 1 is the likeliest


def measure(unaries: Unaries, built: Built) -> Metrics:
    found = passes.divergences(unaries, built.law, built.log_u, built.log_v)
    sides = [(found.forward_a, found.forward_b), (found.reverse_a, found.reverse_b), (found.jsd_a, found.jsd_b)]
    everywhere = _three(float(torch.cat(side).mean(dtype=torch.float64)) for side in sides)
    information = max(0.0, _entropy(built.log_u) + _entropy(built.log_v) - found.entropy)
    if unaries.gold is None:
        nowhere = _three([math.nan] * 3)
        return Metrics(math.nan, math.nan, *nowhere, *everywhere, found.entropy, information, 0)
    x, y = unaries.gold
    here = _three(float(of_a[y] + of_b[x]) / 2 for of_a, of_b in sides)
    log_q = float(built.law.cells(unaries, slice(x, x + 1), slice(y, y + 1)))
    unary = log_q - (float(built.log_u[x]) + float(built.log_v[y])) / 2
    rank = 1 + passes.count_above(unaries, built.law, log_q)
    return Metrics(-log_q / 2, -unary, *here, *everywhere, found.entropy, information, rank)


def own_unary_nll(unaries: Unaries) -> float:
    """The model's own U-NLL: −½ [log A(x|y) + log B(y|x)] at the text's own tokens; nan where there are none."""
    if unaries.gold is None:
        return math.nan
    x, y = unaries.gold
    return -float(unaries.log_a[x, y] + unaries.log_b[x, y]) / 2


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    forward, reverse, jensen_shannon = values
    return forward, reverse, jensen_shannon


def _entropy(log_p: Tensor) -> float:
    p = log_p.double()
    return -float(torch.where(p > -torch.inf, p.exp() * p, 0.0).sum())
