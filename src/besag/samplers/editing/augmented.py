"""What came of augmentation: each copy of each text, what changed in it, how near it stayed, or why it is as it was.

Knows tables and data. How the copies came about is `augment.py`'s knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import OfRows, Presented
from besag.results.status import Status, together
from besag.results.words import counted, number, passes

if TYPE_CHECKING:
    from pandas import DataFrame


class Change(NamedTuple):
    """A word that is another one now."""

    old: str
    new: str
    start: int  # in characters of the original


class Augmented(NamedTuple):
    """One copy of one text."""

    original: str
    text: str
    number: int  # of the text among those given, from 0
    copy: int
    changed: tuple[Change, ...]  # words; tokens where the vocabulary does not set words apart by spaces
    similarity: float  # of the new text to the original
    log_prob_change: float  # nats
    moves: int
    accepted: int  # moves that changed the text
    refused: int  # by the similarity
    unread: int  # moves whose text would not read back as the same tokens and words, a sign being no word
    passes: int  # forward passes of this copy alone
    status: Status = Status.OK  # or why the text is as it was
    reason: str = ""  # the same with its numbers


@dataclass(frozen=True, eq=False, repr=False)
class Augmentation(Presented, OfRows[Augmented]):
    """Copies of texts, in the order of the texts. Iterate over it, or index it, for the rows."""

    rows: tuple[Augmented, ...]
    guard: str  # what the similarity is, and how large it must be
    seed: int
    model: str
    dtype: str
    shared_passes: int = 0  # spent once for all rows, on the random texts that likeness is measured against

    @property
    def passes(self) -> int:
        """Forward passes of the whole call: those of all rows, and those spent once for all."""
        return sum(row.passes for row in self.rows) + self.shared_passes

    @property
    def texts(self) -> list[str]:
        """The new texts: of the copies that changed."""
        return [row.text for row in self.rows if row.status == "ok"]

    # ---- what it is

    @property
    def status(self) -> Status:
        return together(row.status for row in self.rows)

    @property
    def facts(self) -> list[str]:
        """What a reader must know, most important first."""
        repeated = sum(row.status == Status.REPEATED for row in self.rows)
        return [
            f"{len(self.texts):,} of {counted(len(self.rows), 'copy')} changed",
            *([f"{counted(repeated, 'copy')} LEFT OUT: NO FURTHER DIFFERENT TEXT"] if repeated else []),
            self.guard,
            passes(self.passes),
            f"seed {self.seed}",
            self.model,
            self.dtype,
        ]

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        about = {name: getattr(self, name) for name in ("guard", "passes", "seed", "model", "dtype")}
        return dict(json_ready({**self._answers(), **about, "rows": self.rows}))

    def to_pandas(self) -> DataFrame:
        """One row a copy; `changed` as "old → new" words."""
        words = [", ".join(f"{change.old} → {change.new}" for change in row.changed) for row in self.rows]
        rows = [
            {**row._asdict(), "changed": said, "status": str(row.status)}
            for row, said in zip(self.rows, words, strict=True)
        ]
        return data.frame(self, rows, Augmented._fields, guard=self.guard, passes=self.passes)

    def _grids(self) -> list[Grid]:
        shown, last = list[Line](), -1
        for row in self.rows:
            if row.number != last:
                shown.append(Line(("", "", row.original), strong=True))
            last, changed = row.number, row.status == "ok"
            numbers = [number(row.similarity, 3), number(row.log_prob_change)] if changed else ["", ""]
            shown.append(Line((*numbers, row.text if changed else f"unchanged: {row.reason}")))
        return [Grid(("similarity", "Δ log p", ""), shown, left=(2,))]
