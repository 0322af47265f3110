"""Windows over long text: the most context for each place, and the middle of places that are asked together."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import tokenizers

from besag.errors import BesagError
from besag.places.places import find
from besag.places.windows import ends, window_around, windows
from besag.vocabulary import Vocabulary


@cache
def cased() -> Vocabulary:
    return Vocabulary(tokenizers.build("wordpiece-cased"))


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


@given(st.integers(0, 200), st.integers(0, 200), st.integers(3, 60))
def test_a_long_text_is_cut_around_its_places(first, second, limit):
    """The window holds both places, has as much text on either side, and keeps the special tokens at its ends."""
    words = cased()
    body, room = 201, limit - 2
    text = " ".join(["cats", "sleep", "on", "the"] * 50 + ["mat"])
    positions = {first + 1, second + 1}
    if max(positions) - min(positions) >= room:
        with pytest.raises(BesagError, match=f"the model sees {room} tokens of text"):
            find(words, text, sorted(positions), limit)
        return
    places = find(words, text, sorted(positions), limit)
    whole = places.encoded.ids
    assert len(places.ids) == limit
    assert places.ids[[0, -1]].tolist() == whole[[0, -1]].tolist()
    assert places.ids[list(places.at)].tolist() == whole[list(places.positions)].tolist()
    start = places.positions[0] - places.at[0]
    assert places.ids[1:-1].tolist() == whole[1 + start : 1 + start + room].tolist()
    left, right = min(places.at) - 1, limit - 2 - max(places.at)
    assert abs(left - right) <= 1 or (start == 0 and left < right) or (start == body - room and left > right)


def test_a_text_that_fits_is_shown_whole():
    [encoded] = cased().encode(["The man is at the casino."])
    assert ends(encoded) == (1, 1)
    assert [len(window_around(encoded, (2, 3), limit)[0]) for limit in (None, 11, 10, 9)] == [10, 10, 10, 9]
