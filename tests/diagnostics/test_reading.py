"""Which pairs of places a diagnostic looks at."""

import pytest
from tests.laws import Arbitrary

from besag.diagnostics.reading import askable, pairs
from besag.errors import BesagError
from besag.places.reading import read

LAW = Arbitrary()


def named(text, positions=None):
    return [places.positions for places in pairs(LAW, text, positions)]


def test_the_pair_that_is_named_the_masks_or_all_neighbours():
    assert named("s0 s1 s2 s0", ["s2", -1]) == [(2, 3)]
    assert named("s0 [MASK] s2 [MASK]") == [(1, 3)]
    assert named("s0 s1 s2 s0") == [(0, 1), (1, 2), (2, 3)]


def test_a_pair_has_two_places():
    with pytest.raises(BesagError, match="a pair has two places, and 3 were given"):
        named("s0 s1 s2", [0, 1, 2])
    with pytest.raises(BesagError, match="a pair has two places, and one was given"):
        named("s0 [MASK] s2")
    with pytest.raises(BesagError, match="fewer than two tokens that can be asked"):
        askable(LAW.vocabulary, read(LAW.vocabulary, "s0"))
    with pytest.raises(BesagError, match="'s0' stands 2 times"):
        named("s0 s1 s0", ["s0", "s1"])
