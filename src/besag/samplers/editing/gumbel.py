"""Gumbel noise: drawing by it, and the noise that must have been there.

    x = argmax_v (log p(v) + g_v),   g_v independent with P(g ≤ t) = exp(−e^(−t))      draws x ~ p  (Gumbel-max)

Given the x that came out, the noise has a law too, and it is drawn from exactly, from the top down: the largest value
t = max_v (log p(v) + g_v) is a Gumbel variable independent of where it is, and the others are Gumbel variables cut off
at it,

    g_x = t − log p(x),      g_v = −log(e^(−(t − log p(v))) + e^(−γ_v)),     t, γ_v fresh Gumbel noise.

Two properties carry everything that is built on this. Added to the same log p the noise gives x again. And over x ~ p
the noise is plain Gumbel noise once more, independent of everything: so it may be used with another law p', and then
x' = argmax(log p' + g) is a draw from p', coupled to x. A token stays if no other one gained on it: x' = x whenever
p'(v)/p(v) ≤ p'(x)/p(x) for all v.

`mixed` takes recorded noise a part of the way to fresh noise through the normal scale, z = Φ⁻¹(P(g)), so that what
comes of it is Gumbel noise at every strength; an average of two Gumbel variables is none. All in float64.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from besag.arrays import Floats, Ints

RAREST = 1e-300  # tail probability beyond which noise is not told apart


def gumbel(uniform: Floats) -> Floats:
    """Gumbel noise from numbers in (0, 1)."""
    return np.asarray(-np.log(-np.log(uniform)))


def hindsight(log_probs: Floats, token: Ints, top: Floats, uniform: Floats) -> Floats:
    """(m, V) noise given that each law (m, V) gave its token (m,); from numbers in (0, 1), (m,) and (m, V)."""
    own = np.arange(len(token)), token
    highest = gumbel(top)  # (m,)
    with np.errstate(over="ignore"):  # a token of probability 0 has no bound: e^(−∞) = 0
        noise = -np.log(np.exp(log_probs - highest[:, None]) - np.log(uniform))  # e^(−γ) = −log u
    noise[own] = highest - log_probs[own]
    return np.asarray(noise)


def mixed(recorded: Floats, fresh: Floats, strength: float) -> Floats:
    """Noise at an angle of strength · 90° between the two, in normal scores: 0 is `recorded`, 1 is `fresh`."""
    if strength in (0, 1):
        return recorded if strength == 0 else fresh
    angle = strength * math.pi / 2
    return _from_normal(math.cos(angle) * _to_normal(recorded) + math.sin(angle) * _to_normal(fresh))


def _to_normal(noise: Floats) -> Floats:
    below = np.exp(-np.exp(-noise))
    above = np.maximum(-np.expm1(-np.exp(-noise)), RAREST)  # exact where `below` rounds to 1
    low, high = (torch.special.ndtri(torch.from_numpy(part)).numpy() for part in (np.maximum(below, RAREST), above))
    return np.asarray(np.where(below < 0.5, low, -high))


def _from_normal(scores: Floats) -> Floats:
    sizes = torch.from_numpy(np.abs(scores) / math.sqrt(2))
    tail = np.maximum(torch.special.erfc(sizes).numpy() / 2, RAREST)  # beyond the score, on its side
    return np.asarray(np.where(scores > 0, -np.log(-np.log1p(-tail)), -np.log(-np.log(tail))))
