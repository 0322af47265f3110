"""What came of asking: an answer a row, how sure it is among the labels, and how many are right, beside chance.

Knows numbers and how they are told; who asked is not its affair.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import OfRows, Presented
from besag.results.status import Status
from besag.results.words import counted, percent

if TYPE_CHECKING:
    from pandas import DataFrame

SHOWN = 20  # rows of a table


class Answer(NamedTuple):
    """Of one row."""

    prompt: str  # as it was asked, [MASK] at the gap
    answer: str  # the likeliest label, or what was written
    log_probs: Mapping[str, float]  # of each label, in nats; none where the answer was written
    right: str | None = None  # what the row itself says, if it does

    @property
    def shares(self) -> dict[str, float]:
        """The part of each label among all of them."""
        most = max(self.log_probs.values(), default=0.0)
        weights = {name: math.exp(value - most) for name, value in self.log_probs.items()}
        return {name: weight / sum(weights.values()) for name, weight in weights.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Answers(Presented, OfRows[Answer]):
    """Of all rows, in order. `accuracy` is there where rows say what is right."""

    rows: tuple[Answer, ...]
    labels: tuple[str, ...]  # none: answers were written
    shots: int
    how: str  # the method or the kernel, with its options
    model: str
    dtype: str

    @property
    def judged(self) -> list[Answer]:
        """The rows that say what is right."""
        return [row for row in self.rows if row.right is not None]

    @property
    def accuracy(self) -> float | None:
        """The share of these that are right; None where no row says it."""
        own = self.judged
        return sum(row.answer == row.right for row in own) / len(own) if own else None

    @property
    def majority(self) -> float | None:
        """What the most frequent of the right answers alone would reach."""
        own = Counter(row.right for row in self.judged)
        return max(own.values()) / own.total() if own else None

    @property
    def chance(self) -> float | None:
        """What a guess among the labels would reach; None of answers that are written."""
        return 1 / len(self.labels) if self.labels else None

    @property
    def status(self) -> Status:
        return Status.OK  # what cannot be asked is refused

    @property
    def facts(self) -> list[str]:
        """What a reader must know, most important first."""
        said = [f"{counted(len(self.rows), 'row')}, {counted(self.shots, 'shot')}", self.how, self.model, self.dtype]
        if self.accuracy is None or self.majority is None:
            return said
        n = len(self.judged)
        error = math.sqrt(self.accuracy * (1 - self.accuracy) / n)
        beside = [f"chance {percent(self.chance)}"] if self.chance is not None else []
        beside.append(f"always the most frequent {percent(self.majority)}")
        told = f"{percent(self.accuracy)} right ± {100 * error:.1f} of {n:,} ({', '.join(beside)})"
        return [told, *said]

    def _grids(self) -> Sequence[Grid]:
        sure = [percent(row.shares[row.answer]) if row.log_probs else "" for row in self.rows[:SHOWN]]
        lines = [
            Line([row.prompt, row.answer, share, row.right or ""]) for row, share in zip(self.rows, sure, strict=False)
        ]
        return [Grid(["prompt", "answer", "share", "right"], lines, left=(0, 1, 3))]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: every row, and the figures."""
        figures = {name: getattr(self, name) for name in ("accuracy", "majority", "chance")}
        about = {"labels": list(self.labels), "shots": self.shots, "how": self.how, "model": self.model,
                 "dtype": self.dtype}  # fmt: skip
        return dict(json_ready({**self._answers(), **figures, **about, "rows": self._table()}))

    def to_pandas(self) -> DataFrame:
        """A row for each; `frame.attrs` says what they are."""
        return data.frame(self, self._table())

    def _table(self) -> list[dict[str, Any]]:
        return [{"prompt": row.prompt, "answer": row.answer, "right": row.right, **{
            f"p({name})": share for name, share in row.shares.items()}} for row in self.rows]  # fmt: skip
