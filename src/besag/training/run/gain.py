"""What going on from a model brought: the numbers of the base, before the first step, beside those of the end.

A run that begins from a model is evaluated at step 0, on the text, masks and pairs of all its later evaluations; so a
difference is the training's alone, and not that of another draw. Knows lines of a log; asks no network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from besag.training.run import logs


class Change(NamedTuple):
    """One number, before and after."""

    name: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        return self.after - self.before


def of_base(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """What was found at step 0, by name; nothing where a run did not begin from a model, or was not evaluated."""
    looks = (row for row in rows if row["step"] == 0 and logs.is_evaluation(row))
    return {name: number for row in looks for name, number in row.items() if name not in logs.TRAINING}


def changes(before: Mapping[str, float], after: Mapping[str, float]) -> list[Change]:
    """Every number that both have and that is finite, in the order of `before`."""
    both = (Change(name, number, after[name]) for name, number in before.items() if name in after)
    return [one for one in both if math.isfinite(one.before) and math.isfinite(one.after)]
