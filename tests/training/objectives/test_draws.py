"""Noise on tensors is the noise of `besag.noise`, and spread numbers lie evenly in every batch."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from besag import noise
from besag.training.objectives import draws

WORDS = st.integers(0, 2**32 - 1)


@given(st.integers(0, 2**64 - 1), st.lists(WORDS, min_size=1, max_size=5), WORDS, WORDS)
def test_the_same_numbers_as_in_numpy(seed: int, places: list[int], stream: int, draw: int) -> None:
    drawn = draws.uniform(seed, stream, torch.tensor(places), draw)
    np.testing.assert_array_equal(drawn.numpy(), noise.uniform(seed, stream, np.array(places), draw))


def test_counters_broadcast() -> None:
    drawn = draws.uniform(3, 70, torch.arange(4)[:, None], torch.arange(5))
    np.testing.assert_array_equal(drawn.numpy(), noise.uniform(3, 70, np.arange(4)[:, None], np.arange(5)))


@given(st.integers(0, 1000), st.integers(0, 2**32 - 200), st.integers(2, 100))
def test_consecutive_draws_lie_evenly(seed: int, start: int, count: int) -> None:
    points = np.sort(draws.spread(seed, 64, start + torch.arange(count)).numpy())
    assert points[0] > 0 and points[-1] < 1  # noqa: PT018
    gaps = np.diff(np.append(points, points[0] + 1))
    assert gaps.max() < 2.7 / count  # independent draws: about log(count) / count


def test_one_passage_has_a_uniform_number_over_seeds() -> None:
    points = np.array([float(draws.spread(seed, 64, torch.tensor([7]))) for seed in range(2000)])
    counts = np.bincount((points * 10).astype(int), minlength=10)
    assert ((counts - 200) ** 2 / 200).sum() < 27.9  # chi-square, 9 degrees of freedom, p = 0.001
