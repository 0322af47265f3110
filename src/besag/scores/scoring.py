"""One call of `score`: texts in, `Score`s out, in order.

Texts of one shape are planned together, so the work of planning does not grow with their number; what cannot be scored
is not asked about and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, overload

import numpy as np

from besag.conditionals.contract import Conditionals
from besag.engine import Engine, Idle, Plan
from besag.errors import BesagError, quoted
from besag.reductions import Entropy, Rank, Reduction, Target
from besag.results.status import Status
from besag.results.words import dtype_name
from besag.scores.length import LengthModel
from besag.scores.passage import Parts, Passage, run_of
from besag.scores.registry import FIXED_LENGTH, Method
from besag.scores.registry import method as method_named
from besag.scores.score import Score, parse_base
from besag.vocabulary import Context, Encoded, WordPolicy

ENCODED_TOGETHER = 512  # texts handed to the tokenizer at a time


@overload
def score(engine: Engine, texts: str, method: str | Method = ..., **options: Any) -> Score: ...
@overload
def score(
    engine: Engine, texts: list[str] | tuple[str, ...], method: str | Method = ..., **options: Any
) -> list[Score]: ...
@overload
def score(
    engine: Engine, texts: Iterable[str | Idle], method: str | Method = ..., **options: Any
) -> Iterator[Score]: ...
def score(
    engine: Engine,
    texts: str | Iterable[str | Idle],
    method: str | Method = "pll",
    *,
    words: WordPolicy = "tokenizer",
    prefix: Context = "",
    suffix: Context = "",
    separator: str = " ",
    base: str | float = "e",
    rank: bool = False,
    entropy: bool = False,
    lengths: LengthModel | None = None,
    strict: bool = False,
    **options: Any,
) -> Score | list[Score] | Iterator[Score]:
    """One `Score` of a text, a list for a list, and for any other iterable an iterator that streams, in order."""
    if isinstance(texts, str) and not isinstance(words, str):
        words = [words]  # type: ignore[list-item]
    scoring = Scoring(
        engine.conditionals, method if isinstance(method, Method) else method_named(method, **options),
        words, prefix, suffix, separator, parse_base(base), rank, entropy, lengths, strict,
    )  # fmt: skip
    if isinstance(texts, str):
        return next(scoring.run(engine, [texts]))
    if isinstance(texts, list | tuple):
        return list(scoring.run(engine, texts, len(texts)))
    return scoring.run(engine, texts)


@dataclass
class Scoring:
    conditionals: Conditionals
    method: Method
    words: WordPolicy
    prefix: Context
    suffix: Context
    separator: str
    base: float
    rank: bool
    entropy: bool
    lengths: LengthModel | None
    strict: bool

    def __post_init__(self) -> None:
        self._refuse_misfits(self.method, self.conditionals.name)
        self.in_context = bool(self.prefix or self.suffix)
        self.wanted: tuple[Reduction, ...] = (Target(), *[Rank()] * self.rank, *[Entropy()] * self.entropy)
        self.normalised = self.method.normalised if self.lengths is None else "token sequences of every length"
        self.normalised += " (a lower bound)" if self.method.bound else ""
        self.dtype = dtype_name(self.conditionals.dtype)

    def _refuse_misfits(self, method: Method, name: str) -> None:
        if method.sees != self.conditionals.sees:
            raise BesagError(
                f"the method {method.name!r} needs a masked model, and {name!r} is a causal one, which sees the left "
                "side only: use method='causal'"
                if method.sees == "both"
                else f"the method {method.name!r} needs a causal model, and {name!r} is a masked one: "
                "use method='chain' for its left-to-right probability"
            )
        if (self.rank or self.entropy) and not method.ranks:
            raise BesagError(f"the method {method.name!r} asks each token many times, so it has no one rank or entropy")
        if self.lengths is None:
            return
        if method.normalised != FIXED_LENGTH:
            raise BesagError(
                f"p(n) goes with a probability of texts of one length; {method.name!r} gives none: use 'chain'"
            )
        if self.prefix or self.suffix:
            raise BesagError("p(n) is the law of whole texts; it cannot be used with a prefix or a suffix")
        if self.lengths.fitted_with != name:
            raise BesagError(f"these lengths were fitted with {self.lengths.fitted_with!r}, not with {name!r}")

    def run(self, engine: Engine, texts: Iterable[str | Idle], total: int | None = None) -> Iterator[Score]:
        """Scores in the order of the texts, each as soon as it and all before it are there."""
        waiting: dict[int, Score] = {}
        upcoming = 0
        for done in engine.run(self._plans(engine, texts), total, size=len):
            waiting.update(done)
            while upcoming in waiting:
                score = waiting.pop(upcoming)
                if self.strict and score.status != "ok":
                    raise BesagError(f"{quoted(score.text)} cannot be scored: {score.status.sentence}")
                yield score
                upcoming += 1

    def _plans(self, engine: Engine, texts: Iterable[str | Idle]) -> Iterator[Plan[dict[int, Score]] | Idle]:
        encode, numbers = self.conditionals.vocabulary.encode, count()
        at = 0
        for batch in batches(texts):
            if isinstance(batch, Idle):
                yield batch
                continue
            here = slice(at, at + len(batch))
            at += len(batch)
            words = self.words if isinstance(self.words, str) else self.words[here]
            prefix, suffix = (part if isinstance(part, str) else part[here] for part in (self.prefix, self.suffix))
            shapes: dict[tuple[Status, int, bytes], dict[int, Encoded]] = {}
            for text in encode(
                batch, words=words, prefix=prefix, suffix=suffix, separator=self.separator, lenient=True
            ):
                shape = self._status(text), len(text.ids), text.places.tobytes()
                shapes.setdefault(shape, {})[next(numbers)] = text
            for (status, length, _), alike in shapes.items():
                members = list(alike.items())
                copies = max(1, length * len(members[0][1].places))  # tokens that one text asks to run, in most methods
                together = max(
                    1, engine.batch_tokens // copies
                )  # a plan waits for all of its texts: no more than a batch
                for start in range(0, len(members), together):
                    yield self._plan(status, dict(members[start : start + together]))

    def _plan(self, status: Status, texts: dict[int, Encoded]) -> Plan[dict[int, Score]]:
        if status != "ok":
            return {number: self._unscored(text, status) for number, text in texts.items()}
        passage = Passage(list(texts.values()), self.conditionals, self.wanted).started()
        parts = yield from self.method.plan(passage)
        return dict(zip(texts, self._scores(passage, parts), strict=True))

    def _status(self, text: Encoded) -> Status:
        if not len(text.places):
            return Status.EMPTY if text.decodable else Status.UNDECODABLE
        if text.unknown and text.unknown >= np.diff(text.offsets[text.places]).astype(bool).sum():  # the rest is blank
            return Status.UNKNOWN
        return Status.MASK if self.conditionals.vocabulary.mask_id in text.ids[text.places].tolist() else Status.OK

    def _scores(self, passage: Passage, parts: Parts) -> Iterator[Score]:
        scale = 1 / np.log(self.base)
        places, specials = run_of(passage.places), passage.specials
        log_probs = parts.log_probs * scale
        rank, entropy = parts.rank, None if parts.entropy is None else parts.entropy * scale
        error = None if parts.standard_error is None else parts.standard_error * scale
        extra = {name: value * scale for name, value in parts.extra.items()}
        if self.lengths is not None:
            extra["length"] = np.full(len(passage.texts), self.lengths.log_prob(passage.size) * scale)
        for b, text in enumerate(passage.texts):
            words, (start, end) = text.words[places], text.span
            offsets = text.offsets[places]
            yield Score(
                text=text.text[start:end] if self.in_context else text.text,
                tokens=text.tokens[places] if isinstance(places, slice) else tuple([text.tokens[p] for p in places]),
                ids=text.ids[places],
                log_probs=log_probs[b],
                offsets=np.clip(offsets - start, 0, end - start) if self.in_context else offsets,
                words=words - words[0],
                method=self.method.name,
                normalised=self.normalised,
                base=self.base,
                specials=specials,
                word_policy=text.word_policy,
                model=self.conditionals.name,
                dtype=self.dtype,
                extra={name: float(value[b]) for name, value in extra.items()},
                standard_error=None if error is None else float(error[b]),
                rank=None if rank is None else rank[b],
                entropy=None if entropy is None else entropy[b],
                unknown=text.unknown,
                spaced=self.conditionals.vocabulary.spaced,
            )

    def _unscored(self, text: Encoded, status: Status) -> Score:
        nothing = np.empty(0, np.int64)
        return Score(
            text=text.text[slice(*text.span)], tokens=(), ids=nothing, log_probs=np.empty(0),
            offsets=nothing.reshape(0, 2), words=nothing, method=self.method.name, normalised=self.normalised,
            base=self.base, specials=self.conditionals.vocabulary.special_text, word_policy=text.word_policy,
            model=self.conditionals.name, dtype=self.dtype, status=status, unknown=text.unknown,
        )  # fmt: skip


def batches(texts: Iterable[str | Idle]) -> Iterator[list[str] | Idle]:
    """Texts in lists for the tokenizer; an idle source empties the list at once."""
    batch: list[str] = []
    for text in texts:
        if isinstance(text, Idle):
            if batch:
                yield batch
                batch = []
            yield text
            continue
        batch.append(text)
        if len(batch) == ENCODED_TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch
