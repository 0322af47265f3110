"""A choice among options for one slot of a text.

Knows slots and which score compares what. Refuses to know how a text is scored (`scoring.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from besag.engine import Engine
from besag.errors import BesagError, nearest
from besag.scores.registry import Method
from besag.scores.score import Score
from besag.scores.scoring import score as scored
from besag.scores.show import REASONS
from besag.vocabulary import Vocabulary


@dataclass(frozen=True)
class Choice:
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
                raise BesagError(f"the option {option!r} cannot be scored: {REASONS[score.status]}")
        values = np.array([score.total if reduction == "sum" else score.mean for score in scores])
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

    def to_dict(self) -> dict[str, Any]:
        rows = zip(self.options, self.values.tolist(), self.shares.tolist(), strict=True)
        first = self.scores[0]
        return {
            "options": [{"option": option, "value": value, "share": share} for option, value, share in rows],
            "of": self.of,
            "reduction": self.reduction,
            "method": first.method,
            "model": first.model,
            "base": first.base,
        }

    def __str__(self) -> str:
        width = max(map(len, self.options))
        rows = zip(self.options, self.values, self.shares, strict=True)
        lines = [f"{option:<{width}}  {value:10.4f}  {share:7.2%}" for option, value, share in rows]
        how = f"{self.scores[0].method}, {self.reduction} over the {self.of}"
        return "\n".join([*lines, f"{how}; share among these {len(self.options)} options"])


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
    method = method or ("word_l2r" if of == "sentence" else "chain")
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
        raise BesagError(f"{text!r} needs exactly one slot for the options: write {mark!r} or '{{}}' where they go")
    before, after = text.split(slots[0])
    return before, after
