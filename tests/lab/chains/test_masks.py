"""Laws of masks: what they are, and what is refused as one."""

import numpy as np
import pytest

from besag.errors import BesagError
from besag.lab.chains.masks import checked_masks, uniform_masks


def test_uniform_sets_have_equal_weights():
    masks = uniform_masks(5, 2)
    assert len(masks) == 10
    assert sum(masks.values()) == pytest.approx(1)


def test_sets_are_put_in_order_and_weights_may_look_at_the_state():
    half = np.full((2, 2), 0.5)
    masks = checked_masks({(1, 0): half, (0,): 0.5}, (2, 2))
    assert list(masks) == [(0, 1), (0,)]
    assert masks[(0,)] == 0.5


@pytest.mark.parametrize(
    ("masks", "said"),
    [
        ({}, "at least one set"),
        ({(0,): 0.5, (1,): 0.6}, "sum to 1.1"),
        ({(0,): 1.5, (1,): -0.5}, "give a probability"),
        ({(0,): 1.0}, r"places \[1\] are in no mask, so the chain is reducible"),
        ({(0,): 1.0, (1,): 0.0}, "reducible"),
        ({(0, 5): 1.0}, "at most 1"),
        ({(0, 1): 0.5, (1, 0): 0.5}, "once"),
        ({(): 1.0}, "has a place"),
        ({(0, 1): np.ones(3)}, r"of shape \(2, 2\)"),
    ],
)
def test_what_is_no_law_of_masks_is_refused(masks, said):
    with pytest.raises(BesagError, match=said):
        checked_masks(masks, (2, 2))


def test_too_many_sets_are_refused_with_the_largest_size_that_works():
    with pytest.raises(BesagError, match="at most size=4 works"):
        uniform_masks(24, 12)
