"""What is a law, and what is refused as one."""

import numpy as np
import pytest

from besag.errors import BesagError
from besag.lab.law import as_law, positive_law, refuse_large


def test_a_law_is_taken_as_it_is():
    law = np.full((2, 3), 1 / 6)
    assert as_law(law.tolist()).dtype == np.float64
    np.testing.assert_array_equal(as_law(law), law)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([0.5, 0.6], "sum to 1.1, not to 1"),
        ([1.5, -0.5], "none below 0; got -0.5"),
        ([np.nan, 1.0], "got nan"),
        (1.0, "an axis for each place"),
        (["a"], "array of numbers"),
        (np.full((2,) * 17, 2.0**-17), "16 places of 2 symbols"),
    ],
)
def test_what_is_no_law_is_refused(given, said):
    with pytest.raises(BesagError, match=said):
        as_law(given)


def test_zeros_are_counted_and_named():
    with pytest.raises(BesagError, match=r"2 of 4 states have probability 0, the first \(0, 1\)"):
        positive_law([[0.5, 0.0], [0.0, 0.5]])


def test_the_largest_that_would_work_is_named():
    with pytest.raises(BesagError, match="the largest has 4,096 states, 12 places of 2 symbols"):
        refuse_large((2,) * 13, 2**12, "written down")
    with pytest.raises(BesagError, match="7 places of 3 symbols"):
        refuse_large((3,) * 8, 2**12, "written down")
