"""Whole numbers and numbers, and what only looks like one."""

from __future__ import annotations

import numpy as np
import pytest

from besag.checks import is_number, is_whole, number, whole_number
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
    with pytest.raises(BesagError, match=r"^chains=1000000000: give at most 4,096$"):
        whole_number(10**9, "chains", most=4096)
    with pytest.raises(BesagError, match=r"^chains=a value of type int: give at most 4,096$"):
        whole_number(10**5000, "chains", most=4096)


def test_a_number_is_a_finite_float_within_its_bounds() -> None:
    assert number(np.float32(0.5), "rate", 0, 1) == 0.5
    for value in (float("nan"), float("inf"), 10**400, True, "0.5", None, 1.5):
        with pytest.raises(BesagError, match=r"^rate=.*: give a number, at least 0 and at most 1$"):
            number(value, "rate", 0, 1)
    with pytest.raises(BesagError, match=r"^minutes=inf: give a number, at least 0$"):
        number(float("inf"), "minutes", least=0)
