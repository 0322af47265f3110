"""Intervals over seeds, against Student's by hand."""

import numpy as np
import pytest
from scipy import stats

from besag.errors import BesagError
from besag.lab.seeds import STUDENT, against, interval, ratio, table


def test_an_interval_is_students():
    values = [1.0, 2.0, 4.0, 9.0]
    found = interval(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert found == pytest.approx((4.0, low, high), rel=1e-3)
    assert pytest.approx([stats.t.ppf(0.975, degrees) for degrees in range(1, 12)], rel=1e-3) == STUDENT
    with pytest.raises(BesagError, match="at least two"):
        interval([1.0])


def test_ratios_go_seed_by_seed():
    one, other = np.array([2.0, 20.0]), np.array([1.0, 10.0])
    assert ratio(one, other) == pytest.approx((2, 2, 2))
    found = {("s", "a"): other[:, None], ("s", "b"): one[:, None]}
    assert against(found, "a", ("where", "which"), ["far"]) == [
        {"where": "s", "which": "b", "far": "×2.00 (2.00 to 2.00)"}
    ]
    assert [row["which"] for row in table(found, ("where", "which"), ["far"])] == ["a", "b"]
