"""Schedules of masking that differ by token (DiffusionBERT): how far each bends away from the straight line.

    α_v(t) = 1 − t − b_v sin(πt),     b_v = λ (1 − H̄ / H(v)),     H(v) = −log of v's share of the corpus, H̄ its mean

A token that says more than most (b > 0) is masked earlier than its share of the time, a frequent one later. α_v must
fall for anything to go back, which needs π |b| < 1; so b is cut off at STEEPEST / π. The objective `spindle` trains
with these schedules and the kernel `spindle` samples with them; so counts and λ lie beside the weights (`FILE`).
"""

from __future__ import annotations

from math import pi
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from besag.errors import BesagError, quoted

FILE = "token_counts.safetensors"  # beside the weights of a network that was trained with such schedules

STEEPEST = 0.9  # largest π |b|: every token keeps at least a tenth of the even rate at every time


def curvatures(counts: Tensor, strength: float) -> Tensor:
    """(V,) b_v from counts (V,) and λ; a token never seen counts as seen half a time."""
    total = counts.sum()
    information = -(counts.clamp(min=0.5) / total).clamp(max=0.999).log()
    mean = (counts * information).sum() / total
    return (strength * (1 - mean / information)).clamp(-STEEPEST / pi, STEEPEST / pi)


class Kept(NamedTuple):
    """With which schedules a network was trained."""

    counts: Tensor  # (V,) float64
    strength: float  # λ


def save(folder: str | Path, counts: Tensor, strength: float) -> None:
    from safetensors.torch import save_file

    exact = counts.double().cpu().contiguous()
    save_file({"counts": exact, "strength": torch.tensor(strength, dtype=torch.float64)}, Path(folder) / FILE)


def kept(folder: str | Path | None) -> Kept | None:
    """What lies beside the weights in this folder, if anything does."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if folder is None or not (path := Path(folder) / FILE).is_file():
        return None
    try:
        found = load_file(path)
        return Kept(found["counts"], float(found["strength"]))
    except (OSError, KeyError, ValueError, SafetensorError) as problem:
        raise BesagError(f"{quoted(str(path))} holds no counts of tokens: {problem}") from problem
