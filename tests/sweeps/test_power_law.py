"""A line on two logarithmic axes: exact where the points lie on one; its interval covers the truth as often as said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from besag.errors import BesagError
from besag.sweeps.power_law import power_law


@given(st.floats(-2, 2), st.floats(0.1, 100), st.lists(st.floats(1, 1e9), min_size=3, max_size=6, unique=True))
def test_points_of_a_power_law_give_it_back(exponent, coefficient, sizes):
    if np.ptp(np.log(sizes)) < 0.5:
        return
    law = power_law(sizes, [coefficient * size**-exponent for size in sizes])
    assert law.exponent == pytest.approx(exponent, abs=1e-6)
    assert law(1000.0) == pytest.approx(coefficient * 1000.0**-exponent, rel=1e-4)


def test_the_interval_is_that_of_least_squares_and_covers_the_truth():
    draw = np.random.default_rng(0)
    sizes = np.array([1e3, 3e3, 1e4, 3e4, 1e5])
    covered = []
    for _ in range(400):
        losses = 5 * sizes**-0.2 * np.exp(draw.normal(0, 0.05, 5))
        law = power_law(sizes, losses)
        covered.append(law.low < 0.2 < law.high)
    assert 0.92 < np.mean(covered) < 0.98
    plain = linregress(np.log(sizes), np.log(losses))
    assert law.exponent == pytest.approx(-plain.slope)
    assert (law.high - law.low) / 2 == pytest.approx(3.182446305 * plain.stderr)  # Student's, 3 degrees of freedom


@pytest.mark.parametrize(
    ("x", "y", "why"), [([1, 2], [1, 2], "2 different sizes"), ([1, 2, -3], [1, 1, 1], "positive")]
)
def test_what_is_no_curve_is_refused(x, y, why):
    with pytest.raises(BesagError, match=why):
        power_law(x, y)
