"""What an argument must be, asked in one place: a whole number, a number. True and False are neither."""

from __future__ import annotations

from numbers import Real

import numpy as np

from besag.errors import BesagError


def is_whole(value: object, least: int = 1) -> bool:
    """Is it a whole number, Python's or numpy's, of at least `least`?"""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def is_number(value: object) -> bool:
    """Is it a real number?"""
    return isinstance(value, Real) and not isinstance(value, bool)


def whole_number(value: object, name: str, least: int = 1, right: str = "") -> int:
    """The value as an int, or an error that quotes it; `right` says what would be right, where that is a sentence."""
    if not isinstance(value, int | np.integer) or not is_whole(value, least):
        raise BesagError(f"{name}={value!r}: {right or f'give a whole number, at least {least}'}")
    return int(value)
