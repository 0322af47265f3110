"""What came of augmentation: each copy of each text, what changed in it, how near it stayed, or why it is as it was.

Knows tables and data. How the copies came about is `augment.py`'s knowledge.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from besag.errors import require
from besag.results.data import json_number
from besag.results.tables import aligned, wrapped
from besag.results.words import number

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
    status: str = "ok"  # or why the text is as it was

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "changed": [change._asdict() for change in self.changed],
            "similarity": json_number(self.similarity),
            "log_prob_change": json_number(self.log_prob_change),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Augmentation:
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

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Augmented:
        return self.rows[index]

    def __iter__(self) -> Iterator[Augmented]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, Any]:
        return {"rows": [row.to_dict() for row in self.rows], **self._told()}

    def to_pandas(self) -> DataFrame:
        """One row a copy; `changed` as "old → new" words."""
        pandas = require("pandas", extra="eval")
        words = [", ".join(f"{change.old} → {change.new}" for change in row.changed) for row in self.rows]
        rows = [{**row._asdict(), "changed": said} for row, said in zip(self.rows, words, strict=True)]
        frame: DataFrame = pandas.DataFrame(rows, columns=list(Augmented._fields))
        frame.attrs.update(self._told())
        return frame

    def _told(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("guard", "passes", "seed", "model", "dtype")}

    def __repr__(self) -> str:
        lines, last = [["similarity", "Δ log p", ""]], -1
        for row in self.rows:
            if row.number != last:
                lines.append(["", "", row.original])
            last, changed = row.number, row.status == "ok"
            numbers = [number(row.similarity, 3), number(row.log_prob_change)] if changed else ["", ""]
            lines.append([*numbers, row.text if changed else row.status])
        facts = [
            f"{len(self.texts):,} of {len(self.rows):,} copies changed",
            self.guard,
            f"{self.passes:,} forward passes",
            f"seed {self.seed}",
            self.model,
            self.dtype,
        ]
        return f"{aligned(lines, left=(2,))}\n\n{wrapped(facts, shutil.get_terminal_size().columns)}"
