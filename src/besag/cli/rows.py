"""From scores to rows of a table: which columns there are, and what they are called.

A column's name says what its numbers are: `pll`, `pll_mean`, `chain_surprisal_bits`; with several models, `NAME:pll`.
Counted from 1: rows, sentences, tokens and words. Counted from 0, as in Python: the characters `start` and `end`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from besag.errors import BesagError
from besag.files.encoding import Row
from besag.files.inputs import Record

if TYPE_CHECKING:
    from besag.scores import Score

UNIT = {"e": "", "2": "_bits", "10": "_hartleys"}


@dataclass(frozen=True)
class View:
    """What is shown of a score."""

    per: str = "sentence"
    reduction: str = "sum"
    base: str = "e"
    surprisal: bool = False
    rank: bool = False
    entropy: bool = False
    whole: bool = False  # the score itself with all its tokens, which JSON Lines can hold

    def __post_init__(self) -> None:
        if self.per != "sentence" and self.reduction != "sum":
            raise BesagError(
                f"--reduction {self.reduction} is for --per sentence; a {self.per} has the sum over its tokens"
            )
        if (self.rank or self.entropy) and not (self.per == "token" or (self.whole and self.per == "sentence")):
            option = "--rank" if self.rank else "--entropy"
            raise BesagError(f"{option} belongs to tokens: say --per token, or --format jsonl, which holds them too")

    def rows(self, record: Record, scores: Sequence[Score], labels: Sequence[Label]) -> Iterator[Row]:
        if self.per == "sentence" and not self.whole:
            yield self._sentence(record, scores, labels)
            return
        for score, label in zip(scores, labels, strict=True):
            if self.per == "sentence":
                shown = {"score": self._value(score), "score_is": self._column(label)}
                yield {"row": record.number, **shown, **score.to_dict()}
            else:
                yield from self._parts(record, score, label)

    def _sentence(self, record: Record, scores: Sequence[Score], labels: Sequence[Label]) -> Row:
        """One row a text, the scores side by side."""
        row: dict[str, object] = {"row": record.number, "text": record.text}
        for score, label in zip(scores, labels, strict=True):
            row[label.of_model(self._column(label))] = self._value(score)
            if label.estimated:
                error = score.standard_error
                scale = len(score) if self.reduction == "mean" else 1
                row[label.of_model(f"{self._column(label)}_se")] = None if error is None else error / scale
        for score, label in zip(scores, labels, strict=True):
            row.update({label.of_model("tokens"): len(score), label.of_model("unknown"): score.unknown})
        states = {label.of_model(label.method): score.status for score, label in zip(scores, labels, strict=True)}
        if len(set(states.values())) == 1:
            return {**row, "status": scores[0].status}
        return {**row, "status": "; ".join(f"{whose}: {state}" for whose, state in states.items() if state != "ok")}

    def _value(self, score: Score) -> float:
        value = score.mean if self.reduction == "mean" else score.total
        return -value if self.surprisal else value

    def _column(self, label: Label) -> str:
        mean, surprisal = "_mean" * (self.reduction == "mean"), "_surprisal" * self.surprisal
        return f"{label.method}{mean}{surprisal}{UNIT[self.base]}"

    def _parts(self, record: Record, score: Score, label: Label) -> Iterator[Row]:
        """One row a token or word; a text without a score has one row that is empty but for its status."""
        whose = {"model": label.model, "method": label.method} if label.one_of_several else {}
        if score.status != "ok":
            empty = dict.fromkeys((f"{self.per}_id", *self._names()))
            yield {"sentence_id": record.number, **empty, **whose, "status": score.status}
            return
        pieces = score.by_token() if self.per == "token" else score.by_word()
        for place, piece in enumerate(pieces):
            values: list[object] = [
                score.tokens[place] if self.per == "token" else piece.text,
                piece.value, score.base**piece.value, -piece.value,
            ]  # fmt: skip
            if score.rank is not None:
                values.append(int(score.rank[place]))
            if score.entropy is not None:
                values.append(float(score.entropy[place]))
            if self.per == "token":
                values.append(int(score.words[place]) + 1)
            named = zip(self._names(), [*values, piece.start, piece.end], strict=True)
            yield {"sentence_id": record.number, f"{self.per}_id": place + 1, **dict(named), **whose, "status": "ok"}

    def _names(self) -> list[str]:
        wanted = ["rank"] * self.rank + ["entropy"] * self.entropy + ["word"] * (self.per == "token")
        return [self.per, "log_prob", "prob", "surprisal", *wanted, "start", "end"]


@dataclass(frozen=True)
class Label:
    """Whose score it is, in the names of columns."""

    model: str
    method: str
    estimated: bool  # does it come with a standard error?
    several_models: bool
    one_of_several: bool

    def of_model(self, column: str) -> str:
        return f"{self.model}:{column}" if self.several_models else column
