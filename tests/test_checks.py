"""Whole numbers and numbers, and what only looks like one."""

from __future__ import annotations

import numpy as np
import pytest

from besag.checks import is_number, is_whole, whole_number
from besag.errors import BesagError


@pytest.mark.parametrize(
    ("value", "whole", "number"),
    [(1, True, True), (np.int64(3), True, True), (0, False, True), (True, False, False), (2.0, False, True),
     (np.float32(1.5), False, True), ("1", False, False), (None, False, False), (np.True_, False, False)],
)  # fmt: skip
def test_what_is_a_number(value: object, whole: bool, number: bool) -> None:
    assert is_whole(value) == whole
    assert is_number(value) == number


def test_a_whole_number_is_an_int_or_quoted_in_the_error() -> None:
    found = whole_number(np.int32(2), "k")
    assert (found, type(found)) == (2, int)
    assert whole_number(0, "k", least=0) == 0
    with pytest.raises(BesagError, match=r"^k=2: give a whole number, at least 3$"):
        whole_number(2, "k", least=3)
    with pytest.raises(BesagError, match=r"^steps=2\.5: make at least 1 step\.$"):
        whole_number(2.5, "steps", right="make at least 1 step.")
