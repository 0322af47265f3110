"""What the two losses are made of, for one set K of hidden places and every state x.

    block    −log p_θ(x_K | x_−K)                one part:      s(x) − E[s | x_−K]
    token    −Σ_{i ∈ K} log p_θ(x_i | x_−K)      a part a token: E[s | x_i, x_−K] − E[s | x_−K]

A part is the gradient of one log-probability; it has mean zero given x_−K, so its variance is its own information. All
means are under p(x) p(K | x): with masks that look at x this is the matching conditional p(x_K | x_−K, K).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.errors import BesagError, nearest, quoted
from besag.lab.learning.masks import LOSSES, Loss, Masks, Sets, checked_masks
from besag.lab.systems.system import Family


class Gradients(NamedTuple):
    """Of one set K; S states, d parameters."""

    hidden: tuple[int, ...]
    weight: Floats  # (S,) p(x) p(K | x)
    parts: list[Floats]  # (S, d) each: one for the block, one a hidden place for tokens


def gradients(family: Family, masks: Masks | Sets, loss: Loss) -> Iterator[Gradients]:
    """Set by set."""
    check_loss(loss)
    shape, count = family.shape, len(family.theta)
    for hidden, chances in checked_masks(masks, shape):
        weight = family.law * chances  # (V_1, …, V_N)
        scores = family.scores.reshape(*shape, count)
        outer = conditional_mean(scores, weight, hidden)
        if loss == "block":
            parts = [scores - outer]
        else:
            inner = [tuple(place for place in hidden if place != asked) for asked in hidden]
            parts = [conditional_mean(scores, weight, others) - outer for others in inner]
        full = (*shape, count)
        yield Gradients(hidden, weight.ravel(), [np.broadcast_to(part, full).reshape(-1, count) for part in parts])


def conditional_mean(values: Floats, weight: Floats, hidden: tuple[int, ...]) -> Floats:
    """E[values | x_−K] under `weight`, at every context; 0 where a context weighs nothing, and so counts nothing.

    values (V_1, …, V_N, d), weight (V_1, …, V_N) → the same with 1 for every hidden place.
    """
    if not hidden:
        return values
    mass = weight.sum(hidden, keepdims=True)
    total = (values * weight[..., None]).sum(hidden, keepdims=True)
    return np.asarray(np.divide(total, mass[..., None], out=np.zeros_like(total), where=mass[..., None] > 0))


def check_loss(loss: object) -> None:
    if loss not in LOSSES:
        guess = nearest(loss, LOSSES) if isinstance(loss, str) else ""
        raise BesagError(f"loss={quoted(loss)}: it is the 'block' loss or the 'token' loss.{guess}")
