"""Weights in eight bits: every matrix by rows, whole numbers −127 … 127 and one scale a row.

    s_n = max_k |W_nk| / 127        Q_nk = round(W_nk / s_n)        Ŵ_nk = s_n Q_nk        |Ŵ − W| ≤ s / 2

A row is an output of a layer, or a token of a table of embeddings. What is no matrix (norms, biases) stays as it is.
In a file the whole numbers have the name of the matrix, NAME, and the scales, float32, are NAME.scale. Knows tensors by
their names. Refuses to know networks and folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from besag.conditionals.weights import SCALE, is_scale
from besag.errors import BesagError, quoted

LARGEST = 127


class Rows(NamedTuple):
    """A matrix in eight bits."""

    numbers: Tensor  # (N, K) int8
    scale: Tensor  # (N,) float32

    @property
    def matrix(self) -> Tensor:  # (N, K) float32
        return self.numbers.float().mul_(self.scale[:, None])


def rounded(matrix: Tensor) -> Rows:
    """The nearest of each entry; a row of zeros has the scale 1, so that every scale is above 0."""
    exact = matrix.detach().to("cpu", torch.float32)
    if not bool(exact.isfinite().all()):
        raise BesagError(
            "a matrix with NaN or infinite weights cannot be rounded to eight bits: its weights are broken"
        )
    scale = exact.abs().amax(-1).div_(LARGEST)  # (N,)
    scale.masked_fill_(scale == 0, 1.0)  # a row of zeros, or of numbers so small that their 127th part is none
    numbers = (exact / scale[:, None]).round_().clamp_(-LARGEST, LARGEST).to(torch.int8)
    return Rows(numbers, scale)


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a file of eight bits holds: matrices as whole numbers and scales, all else as it is."""
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() != 2 or not weight.is_floating_point():
            packed[name] = weight.contiguous()
            continue
        if name + SCALE in weights:
            raise BesagError(f"{quoted(name)} cannot be rounded: {quoted(name + SCALE)} is the name of another weight")
        packed[name], packed[name + SCALE] = rounded(weight)
    return packed


def rows_of(packed: Mapping[str, Tensor], title: str) -> dict[str, Rows]:
    """The matrices of a file of eight bits by name; scales that are missing or no scales are refused."""
    found = {}
    for name, numbers in packed.items():
        if numbers.dtype != torch.int8:
            continue
        scale = packed.get(name + SCALE)
        if (why := _wrong(numbers, scale)) is not None:
            raise BesagError(f"the weights of {title} cannot be used: {quoted(name)} is in eight bits, and {why}")
        assert scale is not None
        found[name] = Rows(numbers, scale)
    for name in packed:
        if is_scale(name, packed) and name.removesuffix(SCALE) not in found:
            raise BesagError(f"the weights of {title} cannot be used: {quoted(name)} is the scale of no 8-bit matrix")
    return found


def _wrong(numbers: Tensor, scale: Tensor | None) -> str | None:
    if numbers.dim() != 2:
        return f"has the shape {tuple(numbers.shape)}, where a matrix is needed"
    if scale is None:
        return f"has no scales beside it ({SCALE})"
    if scale.dtype != torch.float32 or scale.shape != numbers.shape[:1]:
        kind = str(scale.dtype).removeprefix("torch.")
        return f"its scales are {kind} of the shape {tuple(scale.shape)}, where {len(numbers)} of float32 are needed"
    if not bool((scale.isfinite() & (scale > 0)).all()):
        return "not all of its scales are finite and above 0"
    return None


def unpack(packed: Mapping[str, Tensor], title: str) -> dict[str, Tensor]:
    """The same weights in floating point, under the names that a network knows them by."""
    rows = rows_of(packed, title)
    plain = {name: weight for name, weight in packed.items() if name not in rows and not is_scale(name, packed)}
    return {**plain, **{name: found.matrix for name, found in rows.items()}}
