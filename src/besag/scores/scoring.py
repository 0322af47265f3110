"""One call of `score`: texts in, `Score`s out, in order.

Texts of one shape are planned together, so the work of planning does not grow with their number; what cannot be scored
is not asked about and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, cast, overload

import numpy as np

from besag.arrays import Floats, Ints
from besag.batches import NotFinite
from besag.checks import checked
from besag.conditionals.contract import Conditionals, gives_zeros, takes_source
from besag.engine import Engine, Idle, Plan
from besag.errors import BesagError, quoted
from besag.reductions import Entropy, Rank, Reduction, Target
from besag.results.status import Status
from besag.results.words import dtype_name
from besag.scores.beside import Beside, Contexts, contexts
from besag.scores.beside import sources as sources_of
from besag.scores.length import LengthModel
from besag.scores.passage import Parts, Passage, run_of, status_of
from besag.scores.registry import FIXED_LENGTH, Method
from besag.scores.registry import method as method_named
from besag.scores.score import Score, parse_base
from besag.scores.source_length import PREDICTED, SourceLengths
from besag.sources import require_source
from besag.vocabulary import Encoded, WordPolicy

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
@checked
def score(
    engine: Engine,
    texts: str | Iterable[str | Idle],
    method: str | Method = "pll",
    *,
    words: WordPolicy = "tokenizer",
    prefix: Contexts = "",
    suffix: Contexts = "",
    separator: str = " ",
    base: str | float = "e",
    rank: bool = False,
    entropy: bool = False,
    lengths: LengthModel | Literal["predicted"] | None = None,
    strict: bool = False,
    sources: Contexts | None = None,
    **options: Any,
) -> Score | list[Score] | Iterator[Score]:
    """One `Score` of a text, a list for a list, and for any other iterable an iterator that streams, in order."""
    if isinstance(texts, str) and not isinstance(words, str):
        words = cast(WordPolicy, [words])
    total = 1 if isinstance(texts, str) else len(texts) if isinstance(texts, list | tuple) else None
    if sources is not None and engine.source is not None:
        raise BesagError("this model is given a source already: say sources= of one that is given none")
    scoring = Scoring(
        engine.conditionals, method if isinstance(method, Method) else method_named(method, **options),
        words, prefix, suffix, separator, parse_base(base), rank, entropy, lengths, strict, total, sources,
    )  # fmt: skip
    if isinstance(texts, str):
        [one] = scoring.run(engine, [texts])
        return one
    found = scoring.run(engine, texts, total)
    return list(found) if isinstance(texts, list | tuple) else found


@dataclass
class Scoring:
    conditionals: Conditionals
    method: Method
    words: WordPolicy
    prefix: Contexts
    suffix: Contexts
    separator: str
    base: float
    rank: bool
    entropy: bool
    lengths: LengthModel | Literal["predicted"] | None
    strict: bool
    total: int | None = None  # texts, where that is known
    sources: Contexts | None = None  # what each text is given; None: the engine's source, if there is one

    def __post_init__(self) -> None:
        self.predicted: SourceLengths | None = None  # the law of lengths, where it is the model's own
        self.of_words = Beside("words", self.words, self.total)
        self.of_sources = None if self.sources is None else Beside("sources", self.sources, self.total)
        self.around = Beside("prefix", self.prefix, self.total), Beside("suffix", self.suffix, self.total)
        self.in_context = not all(part.for_all and part.given == "" for part in self.around)
        self._refuse_misfits(self.method, self.conditionals.name)
        self.wanted: tuple[Reduction, ...] = (Target(), *[Rank()] * self.rank, *[Entropy()] * self.entropy)
        self.normalised = self.method.normalised if self.lengths is None else "token sequences of every length"
        self.normalised += " (a lower bound)" if self.method.bound else ""
        self.dtype = dtype_name(self.conditionals.dtype)
        self.zeros = gives_zeros(self.conditionals)
        self.given = takes_source(self.conditionals)

    def _refuse_misfits(self, method: Method, name: str) -> None:
        if self.sources is not None:
            require_source(self.conditionals)
        if method.sees != self.conditionals.sees:
            raise BesagError(
                f"the method {method.name!r} needs a masked model, and {name!r} is a causal one, which sees the left "
                "side only: use method='causal'"
                if method.sees == "both"
                else f"the method {method.name!r} needs a causal model, and {name!r} is a masked one: "
                "use method='chain' for its left-to-right probability"
            )
        if (self.rank or self.entropy) and not method.ranks:
            raise BesagError(
                f"the method {method.name!r} asks each token many times or unhidden: it has no one rank or entropy"
            )
        if self.lengths is None:
            return
        if method.normalised != FIXED_LENGTH:
            raise BesagError(
                f"p(n) goes with a probability of texts of one length; {method.name!r} gives none: use 'chain'"
            )
        if self.in_context:
            raise BesagError("p(n) is the law of whole texts; it cannot be used with a prefix or a suffix")
        if self.lengths == PREDICTED:
            return
        if not isinstance(self.lengths, LengthModel):
            raise BesagError(f"lengths={quoted(self.lengths)}: give lm.length_model(texts), or 'predicted'")
        if self.lengths.fitted_with != name:
            raise BesagError(f"these lengths were fitted with {self.lengths.fitted_with!r}, not with {name!r}")

    def run(self, engine: Engine, texts: Iterable[str | Idle], total: int | None = None) -> Iterator[Score]:
        """Scores in the order of the texts, each as soon as it and all before it are there."""
        self.predicted = SourceLengths(engine) if self.lengths == PREDICTED else None
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
        for beside in (self.of_words, *self.around, self.of_sources):
            if beside is not None:
                beside.finish()

    def _plans(self, engine: Engine, texts: Iterable[str | Idle]) -> Iterator[Plan[dict[int, Score]] | Idle]:
        encode, numbers = self.conditionals.vocabulary.encode, count()
        for batch in batches(texts):
            if isinstance(batch, Idle):
                yield batch
                continue
            words = self.of_words.take(len(batch))
            (prefix, suffix), lacking = contexts(self.around, len(batch))
            unfit = dict.fromkeys(lacking, Status.NO_CONTEXT)
            given: dict[int, Ints] = {}
            if self.of_sources is not None:
                found, without = sources_of(self.of_sources, self.conditionals, len(batch))
                unfit |= without
            shapes: dict[tuple[Status, int, bytes], dict[int, Encoded]] = {}
            encoded = encode(batch, words=words, prefix=prefix, suffix=suffix, separator=self.separator, lenient=True)
            for place, text in enumerate(encoded):
                status, number = unfit.get(place) or self._status(text), next(numbers)
                shapes.setdefault((status, len(text.ids), text.places.tobytes()), {})[number] = text
                if self.of_sources is not None:
                    given[number] = found[place]
            for (status, length, _), alike in shapes.items():
                members = list(alike.items())
                copies = max(1, length * len(members[0][1].places))  # tokens that one text asks to run, in most methods
                together = max(
                    1, engine.batch_tokens // copies
                )  # a plan waits for all of its texts: no more than a batch
                for start in range(0, len(members), together):
                    yield self._plan(status, dict(members[start : start + together]), given)

    def _plan(self, status: Status, texts: dict[int, Encoded], given: Mapping[int, Ints]) -> Plan[dict[int, Score]]:
        if status != "ok":
            return {number: self._unscored(text, status) for number, text in texts.items()}
        of_texts = [given[number] for number in texts] if given else []
        passage = Passage(list(texts.values()), self.conditionals, self.wanted, of_texts).started()
        try:
            parts = yield from self.method.plan(passage)
        except NotFinite:
            if len(texts) == 1:
                return {number: self._unscored(text, Status.NOT_FINITE) for number, text in texts.items()}
            members = list(texts.items())  # of some of them: whose answers are numbers has its score all the same
            halves = members[: len(members) // 2], members[len(members) // 2 :]
            first = yield from self._plan(status, dict(halves[0]), given)
            return first | (yield from self._plan(status, dict(halves[1]), given))
        return dict(zip(texts, self._scores(passage, parts), strict=True))

    def _status(self, text: Encoded) -> Status:
        vocabulary = self.conditionals.vocabulary
        status, most = status_of(text, vocabulary), self.conditionals.max_length
        if status == "ok" and self.given and most is not None and len(text.ids) > most:
            return Status.LONG  # no part of a text goes with the whole of its source
        if status == "ok" and self.predicted is not None and len(text.places) > self.predicted.most:
            return Status.LONG
        return Status.MASK if status == "ok" and vocabulary.mask_id in text.ids[text.places].tolist() else status

    def _log_lengths(self, passage: Passage) -> Floats:
        """(B,) log p(n), or log p(n | s) of each text's source."""
        count = len(passage.texts)
        if self.predicted is None:
            assert isinstance(self.lengths, LengthModel)
            return np.full(count, self.lengths.log_prob(passage.size))
        sources: Sequence[Ints | None] = passage.sources or [None] * count
        return np.array([self.predicted.log_prob(passage.size, source) for source in sources])

    def _finite(self, *numbers: Floats) -> bool:
        """Are they finite, or −∞ where an outcome may have probability 0?"""
        return all(bool((np.isfinite(one) | (np.isneginf(one) if self.zeros else np.False_)).all()) for one in numbers)

    def _scores(self, passage: Passage, parts: Parts) -> Iterator[Score]:
        scale = 1 / np.log(self.base)
        places, specials = run_of(passage.places), passage.specials
        log_probs = parts.log_probs * scale
        rank, entropy = parts.rank, None if parts.entropy is None else parts.entropy * scale
        error = None if parts.standard_error is None else parts.standard_error * scale
        extra = {name: value * scale for name, value in parts.extra.items()}
        if self.lengths is not None:
            extra["length"] = self._log_lengths(passage) * scale
        for b, text in enumerate(passage.texts):
            if not self._finite(log_probs[b], *(value[b] for value in extra.values())):
                yield self._unscored(text, Status.NOT_FINITE)
                continue
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
                standard_error=None if error is None or not np.isfinite(error[b]) else float(error[b]),
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
