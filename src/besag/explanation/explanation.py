"""Which tokens a prediction rests on: one number a token, and what the number is.

Knows how it is told and drawn. Refuses to know how it was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag.checks import checked
from besag.errors import quoted
from besag.explanation import plots
from besag.explanation.faithfulness import Curve
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.tables import raw, visible
from besag.results.words import number, percent, unseen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


class Importance(NamedTuple):
    position: int  # special tokens counted
    token: str
    text: str  # what it covers
    value: float


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Presented):
    """How much each of n tokens speaks for a prediction: positive for, negative against."""

    text: str
    prediction: str  # "p('Paris' at token 5)", or the score of the text
    log_prob: float  # of it, given the whole text; nats
    tokens: tuple[str, ...]  # (n,) as the tokenizer writes them
    positions: tuple[int, ...]  # (n,) special tokens counted
    offsets: NDArray[np.int64]  # (n, 2) characters of the text
    values: NDArray[np.float64]  # (n,)
    unit: str  # "log odds", or "nats" of a score
    method: str
    lost: float  # mass of replacements that were not tried
    curve: Curve | None  # of faithfulness, where it was asked for
    model: str  # the masked model; "classifier ← masked model" where the two differ
    dtype: str
    unknown: int = 0  # tokens of the text that the tokenizer does not know

    @property
    def status(self) -> Status:
        return Status.OK  # what cannot be explained is refused

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        scored = self.unit == "nats"
        told = f"{self.prediction} {number(self.log_prob)} nats" if scored else self._probability
        lost = f", {self.lost:.1%} of the mass not tried" if self.lost >= 5e-4 else ""
        return [
            *unseen(self.unknown),
            told,
            f"in {self.unit}, positive: the token speaks for it",
            f"{self.method}{lost}",
            *self._faithfulness,
            self.model,
            self.dtype,
        ]

    @property
    def _faithfulness(self) -> list[str]:
        if self.curve is None:
            return []
        if np.isnan(self.curve.relative):
            return ["faithfulness unknown: hiding everything lowers nothing"]
        return [f"faithfulness {number(self.curve.relative)} (1 best, 0 chance)"]

    @property
    def _probability(self) -> str:
        return f"{self.prediction} is {percent(float(np.exp(self.log_prob)))}"

    def pieces(self) -> list[Importance]:
        """Each token, in the order of the text."""
        rows = zip(self.positions, self.tokens, self.offsets.tolist(), self.values.tolist(), strict=True)
        return [Importance(at, token, self.text[start:end], value) for at, token, (start, end), value in rows]

    @checked
    def top(self, n: int = 10) -> list[Importance]:
        """The n tokens that speak loudest for the prediction, loudest first."""
        order = np.argsort(-self.values, kind="stable")[:n]
        pieces = self.pieces()
        return [pieces[i] for i in order]

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        names = ("text", "prediction", "log_prob", "tokens", "positions", "offsets", "values", "unit", "method", "lost",
                 "model", "dtype")  # fmt: skip
        found = None
        if self.curve is not None:
            found = {**self.curve._asdict(), "area": self.curve.area, "relative": self.curve.relative}
        return dict(json_ready({**self._answers(), **{name: getattr(self, name) for name in names}, "curve": found}))

    def to_pandas(self) -> DataFrame:
        """One row a token, in the order of the text."""
        return data.frame(self, self.pieces(), Importance._fields, prediction=self.prediction)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """A bar for each token; with the curve of faithfulness set in, where there is one."""
        return plots.draw(self, ax)

    def _title(self) -> list[str]:
        return [quoted(self.text)]

    def _grids(self) -> list[Grid]:
        finite = self.values[np.isfinite(self.values)]
        most = float(np.abs(finite).max(initial=0.0)) or 1.0
        lines = [
            Line(
                (str(one.position), visible(one.text) if one.text else raw(one.token), number(one.value, 3)),
                share=min(1.0, max(0.0, one.value) / most),
            )
            for one in self.pieces()
        ]
        return [Grid(("", "token", self.unit), lines, left=(1,), bar=2)]
