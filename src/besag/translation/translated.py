"""What came of translating: each source with its targets, best first, what they cost, and the way there.

Knows tables and data. How the targets came about is `translating.py`'s knowledge.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from besag.checks import checked
from besag.errors import BesagError
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line, footer, heading
from besag.results.result import OfRows, Presented
from besag.results.status import Status, together
from besag.results.words import counted, number
from besag.translation.choosing import Hypothesis
from besag.translation.tracing import Step, changed, coloured, doubling, marked, markup

if TYPE_CHECKING:
    from pandas import DataFrame

SHOWN = 3  # traces on a page


@dataclass(frozen=True)
class Translation:
    """One source and its targets."""

    source: str
    hypotheses: tuple[Hypothesis, ...]  # best first; none where the status says why
    tried: int = 0  # targets that were written for it
    passes: int = 0  # forward passes of the network spent on all of them
    missing: tuple[str, ...] = ()  # terms that the best target should hold, and does not
    steps: tuple[Step, ...] = ()  # of the best target, where a trace is kept
    status: Status = Status.OK

    @property
    def text(self) -> str:
        """The best target; empty where there is none."""
        return self.hypotheses[0].text if self.hypotheses else ""

    @property
    def score(self) -> float | None:
        return self.hypotheses[0].score if self.hypotheses else None


@dataclass(frozen=True, eq=False, repr=False)
class Translations(Presented, OfRows[Translation]):
    """The translations of sources, in their order. Iterate over it, or index it, for the rows."""

    rows: tuple[Translation, ...]
    how: str  # the kernel with its options, or the beam
    chosen: str  # what the scores are
    seconds: float  # from the texts in to the texts out
    seed: int
    model: str
    dtype: str

    @property
    def texts(self) -> list[str]:
        """The best target of each source; empty where there is none."""
        return [row.text for row in self.rows]

    @property
    def passes(self) -> int:
        """Forward passes, of all targets of all sources."""
        return sum(row.passes for row in self.rows)

    @checked
    def trace(self, index: int = 0) -> list[Step]:
        """How one translation came about: the sentence after at most 1, 2, 4, 8 … passes, and what changed."""
        row = self.rows[index]
        if not row.steps:
            raise BesagError("no trace was kept: translate with trace=True, by a kernel")
        return changed(doubling(row.steps))

    @checked
    def coloured(self, index: int = 0) -> str:
        """The trace for a terminal, what changed in colour."""
        return coloured(self.trace(index))

    # ---- what it is

    @property
    def status(self) -> Status:
        return together(row.status for row in self.rows)

    @property
    def facts(self) -> list[str]:
        """What a reader must know, most important first."""
        left = Counter(str(row.status) for row in self.rows if row.status != Status.OK)
        reasons = ", ".join(f"{count} {why}" for why, count in left.items())
        lacking = sum(len(row.missing) for row in self.rows)
        spent = [row.passes for row in self.rows if row.hypotheses]
        a_target = sum(spent) / max(1, sum(row.tried for row in self.rows))
        return [
            counted(len(spent), "source") + " translated",
            *([f"{counted(left.total(), 'source')} left out: {reasons}"] if left else []),
            *([f"{counted(lacking, 'REQUIRED TERM')} MISSING".upper()] if lacking else []),
            self.how,
            f"scores: {self.chosen}",
            f"{number(a_target, 1)} passes a target",
            f"seed {self.seed}",
            self.model,
            self.dtype,
        ]  # fmt: skip

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        about = {name: getattr(self, name) for name in ("how", "chosen", "seconds", "seed", "model", "dtype")}
        rows = [
            {
                "source": row.source, "text": row.text, "score": row.score, "status": row.status, "tried": row.tried,
                "passes": row.passes, "missing": row.missing, "steps": [(step.passes, step.text) for step in row.steps],
                "hypotheses": [vars(one) for one in row.hypotheses],
            }
            for row in self.rows
        ]  # fmt: skip
        return dict(json_ready({**self._answers(), **about, "rows": rows}))

    def to_pandas(self) -> DataFrame:
        """One row a hypothesis, `rank` 1 the best; a source without one has a row of its own."""
        rows: list[dict[str, Any]] = []
        for at, row in enumerate(self.rows):
            about = {"number": at, "source": row.source, "status": str(row.status)}
            rows += [{**about, "rank": rank, **vars(one)} for rank, one in enumerate(row.hypotheses, 1)]
            rows += [{**about, "rank": None}] * (not row.hypotheses)
        return data.frame(self, rows, ("number", "source", "status", "rank", "text", "score"), how=self.how)

    def _grids(self) -> list[Grid]:
        found = list[Line]()
        for row in self.rows:
            found.append(Line(("", "", row.source), strong=True))
            if not row.hypotheses:
                found.append(Line(("", "", f"not translated: {row.status.sentence}")))
            for one in row.hypotheses:
                told = "" if one.score is None else number(one.score)
                found.append(Line((told, str(one.passes), one.text)))
        grids = [Grid(("score", "passes", ""), found, left=(2,))]
        for at, row in list(enumerate(self.rows))[:SHOWN]:
            if row.steps:
                lines = [Line((str(step.passes), marked(step))) for step in self.trace(at)]
                grids.append(Grid(("passes", ""), lines, left=(1,)))
        return grids

    def _repr_html_(self) -> str:
        traces = "".join(markup(self.trace(at)) for at, row in list(enumerate(self.rows))[:SHOWN] if row.steps)
        return heading(self._title()) + self._grids()[0].html() + traces + footer(self.facts)
