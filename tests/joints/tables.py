"""Pairs of conditionals for tests: of a true joint, or of none."""

from __future__ import annotations

import numpy as np
import torch

from besag.joints.unaries import Unaries


def compatible(m: int, k: int, seed: int, concentration: float = 0.5) -> tuple[Unaries, torch.Tensor]:
    """The conditionals and marginals of one random joint, and the joint."""
    weights = np.random.default_rng(seed).gamma(concentration, size=(m, k)) + 1e-9
    joint = torch.from_numpy(weights / weights.sum())
    return Unaries.of(joint, joint, joint.sum(1), joint.sum(0)), joint


def incompatible(m: int, k: int, seed: int, scale: float = 1.5, gold: bool = True) -> Unaries:
    """Conditionals of no joint at all: random logits for each."""
    generator = np.random.default_rng(seed)
    a, b = (torch.from_numpy(generator.normal(scale=scale, size=(m, k))).exp() for _ in range(2))
    hidden_a, hidden_b = (torch.from_numpy(generator.dirichlet(np.ones(size))) for size in (m, k))
    place = (int(generator.integers(m)), int(generator.integers(k))) if gold else None
    return Unaries.of(a, b, hidden_a, hidden_b, gold=place)


def single(unaries: Unaries) -> Unaries:
    """The same numbers in float32."""
    names = ("log_a", "log_b", "energy_a", "energy_b", "hidden_a", "hidden_b")
    return Unaries(
        **{name: getattr(unaries, name).float() for name in names},
        ids_a=unaries.ids_a, ids_b=unaries.ids_b, gold=unaries.gold,
    )  # fmt: skip
