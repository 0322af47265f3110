"""`besag.noise` on tensors: the same numbers, computed where the tensors are, so that no batch waits for the CPU.

Philox multiplies 32-bit words into 64 bits. Signed 64-bit products wrap around, and the words taken out of them are the
same; so int64, which every device has, is enough.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from besag import noise

_MULTIPLIERS, _KEY_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF
_GOLDEN = 0x9E3779B9  # 2³² / golden ratio, odd


def uniform(seed: int, *counters: Tensor | int) -> Tensor:
    """`besag.noise.uniform` of the (at most four) broadcast counters, at least one of them a tensor."""
    like = next(counter for counter in counters if isinstance(counter, Tensor))
    words: list[Any] = [(counter.long() if isinstance(counter, Tensor) else counter) & _LOW for counter in counters]
    c0, c1, c2, c3 = words + [0] * (4 - len(words))  # plain numbers stay such, so that none is sent to a device
    k0, k1 = seed & _LOW, (seed >> 32) & _LOW
    for _ in range(10):
        left, right = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = ((right >> 32) & _LOW) ^ c1 ^ k0, right & _LOW, ((left >> 32) & _LOW) ^ c3 ^ k1, left & _LOW
        k0, k1 = (k0 + _KEY_STEPS[0]) & _LOW, (k1 + _KEY_STEPS[1]) & _LOW
    if like.device.type == "mps":  # has no float64
        few: Tensor = ((c0 >> 8).float() + 0.5) * 2.0**-24
        return few
    bits: Tensor = ((c0 >> 6) << 26) | (c1 >> 6)
    return (bits.double() + 0.5) * 2.0**-52


def spread(seed: int, stream: int, draw: Tensor) -> Tensor:
    """Numbers in (0, 1), uniform each, that lie evenly for consecutive draws (low discrepancy).

    u = frac(U + draw / φ), φ the golden ratio: one shift U for the seed, and any run of consecutive draws, so any
    batch, covers the interval with gaps of three lengths at most.
    """
    shift = int(float(noise.uniform(seed, stream, 0)) * 2.0**32)
    turned = (draw.long() * _GOLDEN + shift) & _LOW
    return (turned.to(torch.float32 if draw.device.type == "mps" else torch.float64) + 0.5) * 2.0**-32


def tokens(logits: Tensor, height: Tensor) -> Tensor:  # (N, V), (N,) -> (N,)
    """One token a row, where its distribution function reaches the height in (0, 1); never one whose logit is −∞."""
    reach = logits.softmax(-1).cumsum(-1)
    # the first that reaches it: what has no chance reaches nothing that the token before it did not
    return torch.searchsorted(reach, (height.to(reach.dtype) * reach[:, -1])[:, None])[:, 0]
