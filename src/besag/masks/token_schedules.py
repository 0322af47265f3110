"""Schedules of masking that differ by token (DiffusionBERT): how far each bends away from the straight line.

    α_v(t) = 1 − t − b_v sin(πt),     b_v = λ (1 − H̄ / H(v)),     H(v) = −log of v's share of the corpus, H̄ its mean

A token that says more than most (b > 0) is masked earlier than its share of the time, a frequent one later. α_v must
fall for anything to go back, which needs π |b| < 1; so b is cut off at STEEPEST / π. The objective `spindle` trains
with these schedules and the kernel `spindle` samples with them.
"""

from __future__ import annotations

from math import pi

from torch import Tensor

STEEPEST = 0.9  # largest π |b|: every token keeps at least a tenth of the even rate at every time


def curvatures(counts: Tensor, strength: float) -> Tensor:
    """(V,) b_v from counts (V,) and λ; a token never seen counts as seen half a time."""
    total = counts.sum()
    information = -(counts.clamp(min=0.5) / total).clamp(max=0.999).log()
    mean = (counts * information).sum() / total
    return (strength * (1 - mean / information)).clamp(-STEEPEST / pi, STEEPEST / pi)
