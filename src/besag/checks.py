"""What an argument must be, asked in one place: a whole number, a number. True and False are neither."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from besag.errors import BesagError, quoted


def is_whole(value: object, least: int = 1) -> bool:
    """Is it a whole number, Python's or numpy's, of at least `least`?"""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def is_number(value: object) -> bool:
    """Is it a real number?"""
    return isinstance(value, Real) and not isinstance(value, bool)


# What one request may ask for: no honest one comes near, and beyond it would not end, or not fit.
MOST_CHAINS = 2**20
MOST_STEPS = 10**8  # of a chain; also where nothing but time is spent
MOST_LENGTH = 2**17  # tokens of a text from nothing
MOST_PLACES = 2**20  # of a block, a group or a window
MOST_CANDIDATES = 1024  # tokens of each of two places, of which a table is made for every chain
MOST_MINORS = 10**5
MOST_COPIES = 2**16  # of a text


def whole_number(value: object, name: str, least: int = 1, right: str = "", most: int | None = None) -> int:
    """The value as an int, or an error that quotes it; `right` says what would be right, where that is a sentence.

    `most` is what a request may ask for: a count beyond it would not end, or not fit, and is refused as it comes in.
    """
    if not isinstance(value, int | np.integer) or not is_whole(value, least):
        raise BesagError(f"{name}={quoted(value)}: {right or f'give a whole number, at least {least}'}")
    if most is not None and value > most:
        raise BesagError(f"{name}={quoted(value)}: give at most {most:,}")
    return int(value)


def number(value: object, name: str, least: float = -math.inf, most: float = math.inf) -> float:
    """The value as a finite float from `least` to `most`, or an error that quotes it."""
    found = _as_float(value)
    if not (math.isfinite(found) and least <= found <= most):
        bounds = [f"at least {least:g}"] * math.isfinite(least) + [f"at most {most:g}"] * math.isfinite(most)
        raise BesagError(f"{name}={quoted(value)}: give a number{', ' if bounds else ''}{' and '.join(bounds)}")
    return found


def _as_float(value: object) -> float:
    try:
        return float(value) if isinstance(value, Real) and is_number(value) else math.nan
    except OverflowError:  # an integer beyond every float
        return math.inf
