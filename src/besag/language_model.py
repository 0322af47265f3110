"""The door: a masked (or causal, or exact) model that scores texts and chooses among options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch

from besag import models
from besag.conditionals.contract import Conditionals
from besag.engine import Engine, Idle, Plan
from besag.errors import BesagError, nearest
from besag.reductions import Entropy, Rank, Reduction, Target
from besag.scores import LengthModel, Method, Score
from besag.scores import method as method_named
from besag.scores.choice import Choice
from besag.scores.passage import Parts, Passage, run_of
from besag.scores.registry import FIXED_LENGTH
from besag.scores.score import parse_base
from besag.scores.show import REASONS, quoted
from besag.vocabulary import Encoded, WordPolicy

ENCODED_TOGETHER = 256  # texts handed to the tokenizer at a time


def load(
    model: str | Path | tuple[Any, Any] | Conditionals | None = None,
    *,
    tokenizer: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    revision: str | None = None,
    allow_pickle: bool = False,
    batch_tokens: int | None = None,
    progress: bool | None = None,
    name: str | None = None,
) -> LanguageModel:
    """A language model from the embedded model (None), a folder, a hub name, (model, tokenizer) or an exact law.

    `batch_tokens` fixes how many tokens run at a time (otherwise found); `progress` shows a bar on stderr (None: only
    on a terminal, for work of over a second).
    """
    if isinstance(model, Conditionals):
        conditionals = model
    else:
        if model is None or model == models.EMBEDDED:
            model, name = models.path(), name or models.EMBEDDED
        from besag.conditionals.loading import load_conditionals  # brings transformers, which exact laws do without

        conditionals = load_conditionals(
            model,
            tokenizer=tokenizer,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_pickle=allow_pickle,
            name=name,
        )
    return LanguageModel(conditionals, batch_tokens=batch_tokens, progress=progress)


class LanguageModel:
    """Everything one model can be asked. `model` and `tokenizer` are the ones it was built from."""

    def __init__(
        self, conditionals: Conditionals, *, batch_tokens: int | None = None, progress: bool | None = None
    ) -> None:
        self.conditionals = conditionals
        self.engine = Engine(conditionals, batch_tokens=batch_tokens, progress=progress)
        self.vocabulary = conditionals.vocabulary
        self.name = conditionals.name
        self.model = getattr(conditionals, "model", None)
        self.tokenizer = self.vocabulary.tokenizer

    def __repr__(self) -> str:
        return f"LanguageModel({self.name!r}, {self.conditionals.device}, {self.dtype}, V={self.conditionals.width:,})"

    @property
    def dtype(self) -> str:
        return str(self.conditionals.dtype).removeprefix("torch.")

    @overload
    def score(self, texts: str, method: str | Method = ..., **options: Any) -> Score: ...
    @overload
    def score(self, texts: list[str] | tuple[str, ...], method: str | Method = ..., **options: Any) -> list[Score]: ...
    @overload
    def score(self, texts: Iterable[str | Idle], method: str | Method = ..., **options: Any) -> Iterator[Score]: ...

    def score(
        self,
        texts: str | Iterable[str | Idle],
        method: str | Method = "pll",
        *,
        words: WordPolicy = "tokenizer",
        prefix: str = "",
        suffix: str = "",
        separator: str = " ",
        base: str | float = "e",
        rank: bool = False,
        entropy: bool = False,
        lengths: LengthModel | None = None,
        strict: bool = False,
        **options: Any,
    ) -> Score | list[Score] | Iterator[Score]:
        """Score a text (one `Score`), a list (a list), or any other iterable (an iterator that streams, in order).

        `prefix` and `suffix` are shown but not scored: the score is then conditional on them. `lengths` adds log p(n)
        to a method that is normalised at a fixed length, so that texts of different lengths compare as probabilities.
        A text that cannot be scored has a `status` that says why and no total; `strict=True` raises instead.
        Further options belong to the method, for example `order="random", seed=1` for `chain`.
        """
        scoring = _Scoring(
            self, method if isinstance(method, Method) else method_named(method, **options),
            words, prefix, suffix, separator, parse_base(base), rank, entropy, lengths, strict,
        )  # fmt: skip
        if isinstance(texts, str):
            if not isinstance(words, str):
                words = scoring.words = [words]  # type: ignore[list-item]
            return next(self.engine.run(scoring.plans([texts])))
        if isinstance(texts, list | tuple):
            return list(self.engine.run(scoring.plans(texts), total=len(texts)))
        return self.engine.run(scoring.plans(texts))

    def length_model(self, texts: Iterable[str]) -> LengthModel:
        """p(n), the law of how many tokens a text has, fitted to these texts."""
        encoded = (
            one for batch in _batches(texts) if not isinstance(batch, Idle) for one in self.vocabulary.encode(batch)
        )
        return LengthModel.fit((len(one.places) for one in encoded), fitted_with=self.name)

    def choose(
        self,
        text: str,
        options: Sequence[str],
        method: str | Method = "word_l2r",
        *,
        of: Literal["sentence", "option"] = "sentence",
        reduction: Literal["sum", "mean"] = "sum",
        **scoring: Any,
    ) -> Choice:
        """Which option fits the slot of the text best? The slot is the mask token, "[MASK]" or "{}".

        `of="sentence"` compares scores of the whole filled text, `of="option"` of the option alone given the rest.
        """
        if isinstance(options, str) or not options:
            raise BesagError(f"choose needs a list of options, not {options!r}")
        if of not in ("sentence", "option"):
            raise BesagError(f"of={of!r}: compare 'sentence' or 'option'.{nearest(of, ['sentence', 'option'])}")
        slots = [slot for slot in (self.vocabulary.mask_token, "[MASK]", "{}") if slot and slot in text]
        if not slots or text.count(slots[0]) != 1:
            mark = self.vocabulary.mask_token or "{}"
            raise BesagError(f"{text!r} needs exactly one slot for the options: write {mark!r} or '{{}}' where they go")
        before, after = text.split(slots[0])
        if of == "sentence":
            scores = self.score([before + option + after for option in options], method, **scoring)
        else:
            scores = self.score(list(options), method, prefix=before, suffix=after, separator="", **scoring)
        return Choice.among(list(options), scores, of, reduction)


class _Scoring:
    """One call of `score`: turns texts into plans that return `Score`s."""

    def __init__(
        self, lm: LanguageModel, method: Method, words: WordPolicy, prefix: str, suffix: str, separator: str,
        base: float, rank: bool, entropy: bool, lengths: LengthModel | None, strict: bool,
    ) -> None:  # fmt: skip
        if method.sees != lm.conditionals.sees:
            raise BesagError(
                f"the method {method.name!r} needs a masked model, and {lm.name!r} is a causal one, which sees the "
                "left side only: use method='causal'"
                if method.sees == "both"
                else f"the method {method.name!r} needs a causal model, and {lm.name!r} is a masked one: "
                "use method='chain' for its left-to-right probability"
            )
        if (rank or entropy) and not method.ranks:
            raise BesagError(f"the method {method.name!r} asks each token many times, so it has no one rank or entropy")
        if lengths is not None:
            if method.normalised != FIXED_LENGTH:
                raise BesagError(
                    f"p(n) goes with a probability of texts of one length; {method.name!r} gives none: use 'chain'"
                )
            if prefix or suffix:
                raise BesagError("p(n) is the law of whole texts; it cannot be used with a prefix or a suffix")
            if lengths.fitted_with != lm.name:
                raise BesagError(
                    f"these lengths were fitted with {lengths.fitted_with!r}, not with {lm.name!r}; fit them anew"
                )
        self.lm, self.method, self.words, self.lengths, self.strict = lm, method, words, lengths, strict
        self.context = {"prefix": prefix, "suffix": suffix, "separator": separator}
        self.specials = ""
        self.in_context = bool(prefix or suffix)
        self.base, self.nats = base, 1 / np.log(base)
        self.wanted: tuple[Reduction, ...] = (Target(), *([Rank()] if rank else []), *([Entropy()] if entropy else []))

    def plans(self, texts: Iterable[str | Idle]) -> Iterator[Plan[Score] | Idle]:
        at = 0
        for batch in _batches(texts):
            if isinstance(batch, Idle):
                yield batch
                continue
            words = self.words if isinstance(self.words, str) else self.words[at : at + len(batch)]
            for encoded in self.lm.vocabulary.encode(batch, words=words, **self.context):
                yield self.plan(encoded)
            at += len(batch)

    def plan(self, encoded: Encoded) -> Plan[Score]:
        passage = Passage(encoded, self.lm.conditionals, self.wanted)
        status = self.status(passage)
        if status != "ok":
            if self.strict:
                raise BesagError(f"{quoted(encoded.text)} cannot be scored: {REASONS[status]}")
            return self.result(passage, Parts(np.empty(0)), status)
        passage = passage.started()
        self.specials = self.specials or passage.specials  # the same for every text
        return self.result(passage, (yield from self.method.plan(passage)), status)

    def status(self, passage: Passage) -> str:
        encoded, places = passage.encoded, passage.encoded.places
        if not len(places):
            return "empty"
        if (
            encoded.unknown and encoded.unknown >= np.diff(encoded.offsets[places]).astype(bool).sum()
        ):  # the rest is blank
            return "unknown"
        return "mask" if self.lm.vocabulary.mask_id in encoded.ids[places].tolist() else "ok"

    def result(self, passage: Passage, parts: Parts, status: str) -> Score:
        encoded, (start, end) = passage.encoded, passage.encoded.span
        places = run_of(encoded.places) if status == "ok" else slice(0)
        extra = dict(parts.extra)
        if self.lengths is not None and status == "ok":
            extra["length"] = self.lengths.log_prob(passage.size)
        offsets = encoded.offsets[places]
        if self.in_context:
            offsets = np.clip(offsets - start, 0, end - start)
        over = self.method.normalised if self.lengths is None else "token sequences of every length"
        over += " (a lower bound)" if self.method.bound else ""
        words = encoded.words[places]
        return Score(
            text=encoded.text[start:end],
            tokens=encoded.tokens[places]
            if isinstance(places, slice)
            else tuple([encoded.tokens[place] for place in places]),
            ids=encoded.ids[places],
            log_probs=parts.log_probs * self.nats,
            offsets=offsets,
            words=words - words[:1],
            method=self.method.name,
            normalised=over,
            base=self.base,
            specials=self.specials,
            word_policy=encoded.word_policy,
            model=self.lm.name,
            dtype=self.lm.dtype,
            status=status,
            extra={key: value * self.nats for key, value in extra.items()},
            standard_error=None if parts.standard_error is None else parts.standard_error * self.nats,
            rank=parts.rank,
            entropy=None if parts.entropy is None else parts.entropy * self.nats,
            unknown=encoded.unknown,
        )


def _batches(texts: Iterable[str | Idle]) -> Iterator[list[str] | Idle]:
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
