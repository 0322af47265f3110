"""From scores and copies to rows of a table: which columns there are, and what they are called.

A column's name says what its numbers are: `pll`, `pll_mean`, `chain_surprisal_bits`; with several models, `NAME:pll`.
Counted from 1: rows, sentences, tokens, words and regions. Counted from 0, as in Python: the characters `start` and
`end`. The `position` of a word, region or span is the number of the word in which it begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from besag.errors import BesagError
from besag.files.encoding import Row
from besag.files.inputs import Record

if TYPE_CHECKING:
    from besag.samplers.editing.augmented import Augmented
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
    narrow: bool = False  # a table on a screen: what another column says, too, is left out

    def __post_init__(self) -> None:
        if self.per != "sentence" and self.reduction != "sum":
            raise BesagError(
                f"--reduction {self.reduction} is for --per sentence; a {self.per} has the sum over its tokens"
            )
        if (self.rank and self.per not in ("token", "sentence")) or (
            (self.rank or self.entropy) and self.per == "sentence" and not self.whole
        ):
            option, others = ("--rank", "") if self.rank else ("--entropy", ", word, region or character-span")
            raise BesagError(
                f"{option} belongs to tokens: say --per token{others}, or --format jsonl, which holds them too"
            )

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
        """One row a part; a text without a score has one row that is empty but for its status."""
        whose = {"model": label.model, "method": label.method} if label.one_of_several else {}
        if score.status != "ok":
            empty = dict.fromkeys(self._names(record))
            yield {"sentence_id": record.number, **empty, **whose, "status": score.status}
            return
        of_part = {"token": self._tokens, "word": self._words}.get(self.per, self._regions)
        for values in of_part(record, score):
            named = zip(self._names(record), values, strict=True)
            yield {"sentence_id": record.number, **dict(named), **whose, "status": "ok"}

    def _tokens(self, record: Record, score: Score) -> Iterator[list[object]]:
        for place, piece in enumerate(score.by_token()):
            word = int(score.words[place]) + 1
            asked = [] if score.rank is None else [int(score.rank[place])]
            more = [*asked, *self._open(score, [place]), word]
            yield [place + 1, score.tokens[place], *_numbers(score, piece.value), *more, piece.start, piece.end]

    def _words(self, record: Record, score: Score) -> Iterator[list[object]]:
        labels = _labels(record, score)
        for number, (piece, tokens) in enumerate(zip(score.by_word(), score.tokens_by_word(), strict=True), 1):
            where = [labels[tokens[0]]] if record.regions is not None else []
            values = [*[number] * (not self.narrow), *_numbers(score, piece.value), *self._open(score, tokens)]
            yield [number, piece.text, *where, *values, piece.start, piece.end]

    def _regions(self, record: Record, score: Score) -> Iterator[list[object]]:
        """Also of a region without tokens, which has no number: it is empty, or an earlier one has its tokens."""
        from besag.spans import tokens_of

        assert record.regions is not None
        labels, spans, tiling = record.regions
        pieces, members = score.by_span(spans, tiling), tokens_of(score.offsets, spans, tiling)
        for label, piece, tokens in zip(labels, pieces, members, strict=True):
            position = int(score.words[tokens[0]]) + 1 if tokens else None
            values = [*_numbers(score, piece.value if tokens else None), *self._open(score, tokens)]
            yield [label, piece.text, position, *values, len(tokens), piece.start, piece.end]

    def _open(self, score: Score, tokens: Sequence[int]) -> list[object]:
        """The entropy at the first token: how open the place was before anything of the part was read."""
        if score.entropy is None:
            return []
        return [float(score.entropy[tokens[0]]) if tokens else None]

    def _names(self, record: Record) -> list[str]:
        numbers, entropy = ["log_prob", "prob", "surprisal"], ["entropy"] * self.entropy
        if self.per == "token":
            return ["token_id", "token", *numbers, *["rank"] * self.rank, *entropy, "word", "start", "end"]
        if self.per == "word":
            where = ["region"] * (record.regions is not None) + ["position"] * (not self.narrow)
            return ["word_id", "word", *where, *numbers, *entropy, "start", "end"]
        name = "region" if self.per == "region" else "span"
        return [name, "text", "position", *numbers, *entropy, "tokens", "start", "end"]


def _numbers(score: Score, value: float | None) -> list[object]:
    return [None] * 3 if value is None else [value, score.base**value, -value]


def _labels(record: Record, score: Score) -> dict[int, object]:
    """The label of each token's region; none where it stands in no span."""
    from besag.spans import tokens_of

    found: dict[int, object] = dict.fromkeys(range(len(score)))
    if record.regions is not None:
        labels, spans, tiling = record.regions
        for label, tokens in zip(labels, tokens_of(score.offsets, spans, tiling), strict=True):
            found.update(dict.fromkeys(tokens, label))
    return found


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


def copy_row(number: int, copy: Augmented) -> Row:
    """A copy of the text of a row."""
    return {
        "row": number, "copy": copy.copy, "text": copy.text, "similarity": copy.similarity,
        "log_prob_change": copy.log_prob_change,
        "changed": ", ".join(f"{change.old} → {change.new}" for change in copy.changed),
        "status": copy.status, "reason": copy.reason,
    }  # fmt: skip
