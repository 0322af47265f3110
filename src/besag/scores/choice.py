"""A choice among options for one slot of a text.

Knows slots and which score compares what. Refuses to know how a text is scored (`scoring.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from besag.checks import checked
from besag.engine import Engine
from besag.errors import BesagError, nearest, quoted
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.plots import bars
from besag.results.result import Presented
from besag.results.status import Status
from besag.results.words import meaning, number, percent
from besag.scores.registry import Method
from besag.scores.score import Score
from besag.scores.scoring import score as scored
from besag.vocabulary import Vocabulary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


DEFAULTS = {"sentence": "word_l2r", "option": "chain"}  # the method by what is compared


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Presented):
    """Options by value, best first. `shares` are the values renormalised over these options: comparable only here."""

    options: tuple[str, ...]
    values: NDArray[np.float64]  # (k,) in the base of the scores
    scores: tuple[Score, ...]
    of: Literal["sentence", "option"]
    reduction: Literal["sum", "mean"]

    @classmethod
    def among(
        cls,
        options: list[str],
        scores: list[Score],
        of: Literal["sentence", "option"],
        reduction: Literal["sum", "mean"],
    ) -> Choice:
        if reduction not in ("sum", "mean"):
            raise BesagError(f"reduction={reduction!r}: a choice compares one number an option, by 'sum' or 'mean'")
        for option, score in zip(options, scores, strict=True):
            if score.status != "ok":
                raise BesagError(f"the option {option!r} cannot be scored: {score.status.sentence}")
        values = np.array([score.total if reduction == "sum" else score.mean for score in scores])
        if not np.isfinite(values).any():
            raise BesagError(f"there is nothing to choose: all {len(options)} options have probability 0")
        order = np.argsort(-values, kind="stable")
        return cls(tuple(options[i] for i in order), values[order], tuple(scores[i] for i in order), of, reduction)

    @property
    def best(self) -> str:
        return self.options[0]

    @property
    def shares(self) -> NDArray[np.float64]:
        """(k,) softmax of the values over the options."""
        weights = self.scores[0].base ** (self.values - self.values.max())
        return np.asarray(weights / weights.sum())

    # ---- what it is

    @property
    def status(self) -> Status:
        return Status.OK  # what cannot be scored is refused

    @property
    def method(self) -> str:
        return self.scores[0].method

    @property
    def normalised(self) -> str:
        """Of what the values are probabilities; empty when of nothing, or when they are means."""
        return self.scores[0].normalised if self.reduction == "sum" else ""

    @property
    def unit(self) -> str:
        return self.scores[0].unit

    @property
    def model(self) -> str:
        return self.scores[0].model

    @property
    def dtype(self) -> str:
        return self.scores[0].dtype

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""
        return [
            f"share among these {len(self.options)} options",
            f"{self.method}, {self.reduction} over the {self.of}, in {self.unit}: {meaning(self.normalised)}",
            self.model,
            self.dtype,
        ]

    # ---- out of here

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON but the scores themselves."""
        rows = zip(self.options, self.values, self.shares, strict=True)
        names = ("of", "reduction", "method", "normalised", "unit", "model", "dtype")
        whole = {
            **self._answers(),
            "options": [{"option": option, "value": value, "share": share} for option, value, share in rows],
            **{name: getattr(self, name) for name in names},
            "base": self.scores[0].base,
        }
        return dict(json_ready(whole))

    def to_pandas(self) -> DataFrame:
        """One row an option, best first; `frame.attrs` says what the numbers are."""
        texts = [score.text for score in self.scores]
        columns = {"option": self.options, "value": self.values, "share": self.shares, "text": texts}
        return data.frame(self, columns, of=self.of)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """The shares as bars, the best on top."""
        return bars(ax, self.options, self.shares, "share among these options", self.facts)

    def _grids(self) -> list[Grid]:
        most = float(self.shares.max())
        return [
            Grid(
                ("", "value", "share"),
                [
                    Line((option, number(value, 4), percent(share)), score.text, share / most)
                    for option, value, share, score in zip(
                        self.options, self.values.tolist(), self.shares.tolist(), self.scores, strict=True
                    )
                ],
                left=(0,),
                bar=2,
            )
        ]


@checked
def choose(
    engine: Engine,
    text: str,
    options: Sequence[str],
    method: str | Method | None = None,
    *,
    of: Literal["sentence", "option"] = "sentence",
    reduction: Literal["sum", "mean"] = "sum",
    **scoring: Any,
) -> Choice:
    """Options for the slot of a text, by the score of the whole filled text or of the option alone given the rest."""
    if isinstance(options, str) or not options:
        raise BesagError(f"choose needs a list of options, not {options!r}")
    if of not in ("sentence", "option"):
        raise BesagError(f"of={of!r}: compare 'sentence' or 'option'.{nearest(of, ['sentence', 'option'])}")
    before, after = _around_slot(engine.conditionals.vocabulary, text)
    method = method or DEFAULTS[of]
    if of == "sentence":
        scores = scored(engine, [before + option + after for option in options], method, **scoring)
    else:
        scores = scored(engine, list(options), method, prefix=before, suffix=after, separator="", **scoring)
    return Choice.among(list(options), scores, of, reduction)


def _around_slot(vocabulary: Vocabulary, text: str) -> tuple[str, str]:
    """The text before and after its one slot."""
    slots = [slot for slot in (vocabulary.mask_token, "[MASK]", "{}") if slot and slot in text]
    if not slots or text.count(slots[0]) != 1:
        mark = vocabulary.mask_token or "{}"
        raise BesagError(
            f"{quoted(text)} needs exactly one slot for the options: write {mark!r} or '{{}}' where they go"
        )
    before, after = text.split(slots[0])
    return before, after
