"""Searches find the minimum of smooth and of stepped losses."""

from __future__ import annotations

import numpy as np
import pytest

from besag.rescoring.tuning import GRID, golden_section, simplex, tuned


def test_golden_section_finds_the_minimum_between_points_of_the_grid() -> None:
    assert golden_section(lambda x: (x - 0.123) ** 2, 0.1, 0.2, 0.15) == pytest.approx(0.123, abs=1e-4)
    assert tuned(lambda at: (at[0] - 0.4321) ** 2, 1)[0] == pytest.approx(0.4321, abs=1e-4)


def test_the_walk_of_a_simplex() -> None:
    def loss(x: np.ndarray) -> float:
        return float((x[0] - 0.3) ** 2 + 4 * (x[1] - 0.7) ** 2 + x[0] * x[1])

    found = simplex(loss, np.array([1.0, 1.0]), 0.1, rounds=200)
    gradient = [2 * (found[0] - 0.3) + found[1], 8 * (found[1] - 0.7) + found[0]]
    np.testing.assert_allclose(gradient, 0, atol=1e-3)
    several = tuned(lambda at: (at[0] - 0.31) ** 2 + (at[1] - 0.77) ** 2, 2)
    np.testing.assert_allclose(several, [0.31, 0.77], atol=1e-3)


def test_of_equals_the_middle_but_nothing_where_nothing_is_gained() -> None:
    [middle] = tuned(lambda at: 0.0 if 0.4 <= at[0] <= 0.8 else 1.0, 1)
    assert 0.5 < middle < 0.7
    assert tuned(lambda at: 1.0, 1) == (0.0,)
    assert tuned(lambda at: at[0], 1) == (0.0,)
    assert tuned(lambda at: 1.0, 2) == (0.0, 0.0)


def test_weights_are_never_negative_and_never_beyond_the_grid_for_one() -> None:
    seen: list[tuple[float, ...]] = []
    tuned(lambda at: seen.append(at) or sum(at), 2)
    assert min(min(at) for at in seen) >= 0
    assert tuned(lambda at: -at[0], 1) == (GRID[-1],)
