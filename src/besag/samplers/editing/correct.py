"""Spelling correction: at every place of a text, is another token likelier than the one that is written?

One pass with nothing hidden. At place i of the written text w

    ŷ_i = argmax_v log p(v at i | w),   taken for w_i iff log p(ŷ_i at i | w) − log p(w_i at i | w) > margin

That is a question for a network that was trained to answer it (`data.pairs = "in-place"`): p(v at i | w) is then the
chance that v was meant where w_i is written. A plain masked model sees the token it is asked about and mostly repeats
it. Tokens are replaced one for one, so what needs more or fewer of them stays as it is; the rest of the text is never
decoded. What cannot be judged alone stays, too: a token that the tokenizer does not know, since p(w_i) is then that of
any stranger, a mere space, and a letter that is written, or would be, by the bytes of several tokens. Not to be
confused with `rewrite`, which draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.checks import checked, is_number
from besag.conditionals.contract import require_both_sides
from besag.engine import Engine, Idle, Plan
from besag.errors import BesagError, quoted
from besag.places.filling import UNFINISHED, filled
from besag.places.reading import read, text_places
from besag.reductions import Chunk, Target
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import OfRows, Presented
from besag.results.status import Status, together
from besag.results.words import counted, dtype_name, number
from besag.samplers.sheet import allowed_tokens
from besag.scores.passage import Passage, status_of
from besag.vocabulary import Encoded, Vocabulary

if TYPE_CHECKING:
    from pandas import DataFrame


class Edit(NamedTuple):
    """A token that is another one now."""

    start: int  # in characters of the original
    end: int
    old: str
    new: str  # as the tokenizer writes it
    log_odds: float  # log p(new) − log p(old) at its place, in nats


class Corrected(NamedTuple):
    """One text."""

    original: str
    text: str
    edits: tuple[Edit, ...]
    status: Status = Status.OK


@dataclass(frozen=True, eq=False, repr=False)
class Corrections(Presented, OfRows[Corrected]):
    """Texts with what was wrong replaced, in their order. Iterate over it, or index it, for the rows."""

    rows: tuple[Corrected, ...]
    margin: float
    model: str
    dtype: str

    @property
    def texts(self) -> list[str]:
        """All of them, corrected or as they were."""
        return [row.text for row in self.rows]

    @property
    def status(self) -> Status:
        return together(row.status for row in self.rows)

    @property
    def facts(self) -> list[str]:
        """What a reader must know, most important first."""
        changed = sum(bool(row.edits) for row in self.rows)
        unread = sum(row.status != Status.OK for row in self.rows)
        left_out = [f"{counted(unread, 'text')} left out: their status says why"] if unread else []
        return [
            f"{changed:,} of {counted(len(self.rows), 'text')} changed, "
            f"{counted(sum(len(row.edits) for row in self.rows), 'token')}",
            *left_out,
            f"one pass, nothing hidden; log odds above {self.margin:g}",
            self.model,
            self.dtype,
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        about = {name: getattr(self, name) for name in ("margin", "model", "dtype")}
        return dict(json_ready({**self._answers(), **about, "rows": self.rows}))

    def to_pandas(self) -> DataFrame:
        """One row a text; `edits` as "old → new" words."""
        rows = [{**row._asdict(), "edits": told(row), "status": str(row.status)} for row in self.rows]
        return data.frame(self, rows, Corrected._fields, margin=self.margin)

    def _grids(self) -> list[Grid]:
        shown = [
            Line((row.text if row.status == "ok" else row.original, _odds(row), told(row) or row.status.sentence))
            for row in self.rows
        ]
        return [Grid(("text", "log odds", "changed"), shown, left=(0, 2))]


def told(row: Corrected) -> str:
    """The changes as "old → new" words."""
    return ", ".join(f"{edit.old} → {edit.new}" for edit in row.edits)


def _odds(row: Corrected) -> str:
    return ", ".join(number(edit.log_odds) for edit in row.edits)


@checked
def correct(engine: Engine, texts: str | Sequence[str], *, margin: float = 0.0) -> Corrections:
    """A text or several, with tokens replaced where another is likelier by more than `margin` nats."""
    if not isinstance(texts, str | Sequence):
        raise BesagError(f"correct({quoted(texts)}): give a text or a list of texts")
    how = Correcting(margin)
    rows = tuple(how.run(engine, [texts] if isinstance(texts, str) else texts))
    conditionals = engine.conditionals
    return Corrections(rows, how.margin, conditionals.name, dtype_name(conditionals.dtype))


@dataclass(frozen=True)
class Correcting:
    """The options, checked; `run` streams over any number of texts in constant memory."""

    margin: float = 0.0  # nats by which another token must be likelier

    def __post_init__(self) -> None:
        if not is_number(self.margin) or self.margin < 0:
            raise BesagError(f"margin={quoted(self.margin)}: a number of nats, 0 or more")

    def run(self, engine: Engine, texts: Iterable[str | Idle]) -> Iterator[Corrected]:
        """The texts in order, each as soon as it and all before it are there."""
        conditionals = engine.conditionals
        require_both_sides(conditionals)
        wanted = (Target(), Likeliest(allowed_tokens(conditionals)))

        def plans() -> Iterator[Plan[Corrected] | Idle]:
            for text in texts:
                if isinstance(text, Idle):
                    yield text
                    continue
                encoded = read(conditionals.vocabulary, text, lenient=True)
                yield self._plan(Passage([encoded], conditionals, wanted) if len(encoded.places) else None, encoded,
                                 conditionals.vocabulary)  # fmt: skip

        yield from engine.run(plans(), len(texts) if isinstance(texts, Sequence) else None)

    def _plan(self, passage: Passage | None, encoded: Encoded, vocabulary: Vocabulary) -> Plan[Corrected]:
        status = status_of(encoded, vocabulary) if len(encoded.places) else Status.EMPTY
        if not encoded.decodable:
            status = Status.UNDECODABLE
        elif vocabulary.mask_id in encoded.ids[encoded.places]:
            status = Status.MASK
        if status != Status.OK or passage is None:
            return Corrected(encoded.text, encoded.text, (), status)
        answers = yield from passage.ask_shown()
        odds = answers["best_log_prob"][0].astype(np.float64) - answers["target"][0]  # (n,)
        free = set(text_places(vocabulary, encoded))
        asked = zip(encoded.places.tolist(), answers["best"][0].tolist(), odds.tolist(), strict=True)
        found = [
            (place, token, self._edit(vocabulary, encoded, place, token, odd))
            for place, token, odd in asked
            if odd > self.margin and place in free and _alone(vocabulary, encoded, place)
        ]
        found = [one for one in found if UNFINISHED not in one[2].new]
        if not found:
            return Corrected(encoded.text, encoded.text, ())
        positions, tokens, edits = zip(*found, strict=True)
        return Corrected(encoded.text, filled(vocabulary, encoded, positions, tokens), edits)

    @staticmethod
    def _edit(vocabulary: Vocabulary, encoded: Encoded, place: int, token: int, odds: float) -> Edit:
        start, end = encoded.offsets[place].tolist()
        new = str(vocabulary.tokenizer.convert_tokens_to_string([vocabulary.token(token)])).strip()
        return Edit(start, end, encoded.text[start:end], new, odds)


def _alone(vocabulary: Vocabulary, encoded: Encoded, place: int) -> bool:
    """Can the token be judged by itself: known, no mere space, and not one of several that write a single letter?"""
    tokens, (start, end) = encoded.tokens, encoded.offsets[place].tolist()
    if int(encoded.ids[place]) == vocabulary.unknown_id or vocabulary.blank(tokens[place]):
        return False
    here = np.flatnonzero((encoded.offsets[:, 0] < end) & (encoded.offsets[:, 1] > start)).tolist()
    return all(other == place or vocabulary.blank(tokens[other]) for other in here)


@dataclass(frozen=True, eq=False)  # holds a tensor, so it is only the same as itself
class Likeliest:
    """The likeliest token among those allowed, and its log-probability under the whole row."""

    allowed: Tensor | None  # (V,) bool on the device of the logits; None: all of them

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        logits = chunk.logits if self.allowed is None else chunk.logits.masked_fill(~self.allowed, -torch.inf)
        value, token = logits.max(-1)
        return {"best": chunk.per_ask(token), "best_log_prob": chunk.per_ask(value - chunk.normaliser)}
