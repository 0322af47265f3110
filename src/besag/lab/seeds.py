"""How sure a mean over seeds is: Student's interval, for values and for ratios of values that share a seed.

Knows columns of numbers, one row a seed. Refuses to speak of one seed alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Floats
from besag.errors import BesagError

STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201)  # 97.5 %, from 1 degree on


class Sure(NamedTuple):
    """A mean and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def interval(values: Sequence[float] | Floats) -> Sure:
    """The mean over seeds."""
    count = len(values)
    if count < 2:
        raise BesagError("an interval over seeds needs at least two of them")
    half = STUDENT[min(count - 1, len(STUDENT)) - 1] * float(np.std(values, ddof=1)) / count**0.5
    middle = float(np.mean(values))
    return Sure(middle, middle - half, middle + half)


def ratio(one: Floats, other: Floats) -> Sure:
    """The geometric mean of one/other, seed by seed."""
    return Sure(*(float(end) for end in np.exp(interval(np.log(one / other)))))


def told(sure: Sure) -> str:
    """As a table has a ratio."""
    return f"×{sure.value:.2f} ({sure.low:.2f} to {sure.high:.2f})"


def table(
    found: Mapping[tuple[str, str], Floats], heads: tuple[str, str], measures: Sequence[str]
) -> list[dict[str, Any]]:
    """A row a cell, found[cell] being (seeds, measures): mean ± half its interval."""
    rows = []
    for cell, values in found.items():
        sure = [interval(column) for column in values.T]
        columns = {
            name: f"{one.value:.4f} ± {one.high - one.value:.4f}" for name, one in zip(measures, sure, strict=True)
        }
        rows.append({**dict(zip(heads, cell, strict=True)), **columns})
    return rows


def against(
    found: Mapping[tuple[str, str], Floats], usual: str, heads: tuple[str, str], measures: Sequence[str]
) -> list[dict[str, Any]]:
    """A row a cell that is not the usual one: its ratio to that, seed by seed."""
    rows = []
    for (where, which), values in found.items():
        if which != usual:
            pairs = zip(values.T, found[where, usual].T, strict=True)
            columns = dict(zip(measures, (told(ratio(one, other)) for one, other in pairs), strict=True))
            rows.append({heads[0]: where, heads[1]: which, **columns})
    return rows
