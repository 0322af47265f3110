"""Windows over long text: the most context for each place, and the middle of places that are asked together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.places.windows import windows


@given(length=st.integers(1, 60), capacity=st.integers(1, 24))
def test_shared_windows_give_the_most_context(length: int, capacity: int) -> None:
    chosen = windows(length, capacity, np.arange(length), centred=False)
    last = max(length - capacity, 0)
    grid = sorted({*range(0, last, max(capacity // 2, 1)), last})
    for place, start in enumerate(chosen.tolist()):
        worth = {}
        for begin in grid:
            if begin <= place < begin + capacity:
                left = capacity if begin == 0 else place - begin
                right = capacity if begin == last else begin + capacity - 1 - place
                worth[begin] = min(left, right)
        assert start in worth
        assert worth[start] == max(worth.values())


@given(length=st.integers(1, 60), capacity=st.integers(1, 24))
def test_centred_windows_hold_their_place_in_the_middle(length: int, capacity: int) -> None:
    place = np.arange(length)
    start = windows(length, capacity, place, centred=True)
    assert (start >= 0).all()
    assert (start <= place).all()
    assert (place < start + capacity).all()
    assert (start + capacity <= max(length, capacity)).all()
    free = (start > 0) & (start < length - capacity)
    assert (place[free] - start[free] == capacity // 2).all()


def test_windows_by_hand() -> None:
    place = np.arange(10)
    assert windows(10, 4, place, centred=False).tolist() == [0, 0, 0, 2, 2, 4, 4, 6, 6, 6]
    assert windows(10, 4, place, centred=True).tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 6, 6]
    assert windows(4, 4, place[:4], centred=False).tolist() == [0, 0, 0, 0]
    assert windows(9, 4, np.array([], dtype=int), centred=False).tolist() == []
    with pytest.raises(BesagError, match="a window of 0 tokens"):
        windows(4, 0, place, centred=True)
