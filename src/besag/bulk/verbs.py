"""What is done to each row: a verb says how a model is loaded and maps records to rows.

A verb is a plain description that travels to where the work is done; opened there, once, it holds the model. All verbs
are used in one way, so whoever runs them knows nothing of scores, fillings or chains. A block of records, up to a None,
goes to the engine whole: questions of one length run together, and equal ones once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import besag
from besag.cli.rows import UNIT, View, copy_row
from besag.errors import BesagError
from besag.files.encoding import Row
from besag.files.inputs import Record
from besag.results.status import Status

if TYPE_CHECKING:
    from besag.language_model import LanguageModel

Records: TypeAlias = Iterable[Record | None]  # None ends a block
Results: TypeAlias = Iterator[tuple[Record, list[Row]]]
MASKED = "The [MASK]."


class Opened(Protocol):
    """A verb with its model."""

    lm: LanguageModel

    def rows(self, records: Records) -> Results: ...  # each record with its rows, in order


class Verb(Protocol):
    @property
    def number(self) -> str: ...  # the column that `score` means in --keep
    @property
    def added(self) -> tuple[str, ...]: ...  # columns that it puts among the other columns of a row
    @property
    def trial(self) -> str: ...  # a text that any model can be asked this of
    def open(self) -> Opened: ...


@dataclass(frozen=True)
class _Modelled:
    """What all verbs say of the model."""

    load: Mapping[str, Any] = field(default_factory=dict)  # arguments of besag.load
    added: tuple[str, ...] = ()
    trial: str = "The cat sleeps."

    def model(self) -> LanguageModel:
        from besag.hardware import alike_by_any_threads

        alike_by_any_threads()  # an actor has other threads than `besag score`
        options = {"progress": False, **self.load}
        lm = besag.load(options.pop("model", None), **options)
        lm.engine.repeat()  # the same questions in the same batches, so that a second run has the bytes of the first
        return lm


# ---- score


@dataclass(frozen=True)
class Score(_Modelled):
    """`besag score`: the log-probability of a text by one method or several."""

    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"pll": {}})  # with their options
    around: Mapping[str, Any] = field(default_factory=dict)  # further arguments of lm.score
    by_row: tuple[str, ...] = ()  # prefix, suffix or both, where each record has its own
    lengths: str | None = None
    view: View = field(default_factory=View)

    @property
    def number(self) -> str:
        first = next(iter(self.methods))
        mean, surprisal = "_mean" * (self.view.reduction == "mean"), "_surprisal" * self.view.surprisal
        return f"{first}{mean}{surprisal}{UNIT[self.view.base]}"

    def open(self) -> Scoring:
        return Scoring(self)


class Scoring:
    def __init__(self, verb: Score) -> None:
        from besag.cli.lengths import length_models
        from besag.cli.side_by_side import pair
        from besag.scores import method

        self.lm, self.view = verb.model(), verb.view
        methods = {name: method(name, **options) for name, options in verb.methods.items()}
        lengths = length_models(verb.lengths, [self.lm], methods)
        self.scorers = pair([self.lm], methods, verb.around, lengths, [""], verb.by_row)

    def rows(self, records: Records) -> Results:
        from besag.cli.side_by_side import side_by_side

        labels = [scorer.label for scorer in self.scorers]
        for record, scores in side_by_side(iter(records), self.scorers, lambda: None):
            yield record, list(self.view.rows(record, scores, labels))


# ---- entropy


@dataclass(frozen=True)
class Entropy(_Modelled):
    """How open the places of a text are: the entropy of what the model expects there, in nats, each place hidden."""

    method: str = "pll"
    options: Mapping[str, Any] = field(default_factory=dict)
    number: str = "entropy"

    def open(self) -> Entropies:
        return Entropies(self)


class Entropies:
    def __init__(self, verb: Entropy) -> None:
        self.lm, self.verb = verb.model(), verb

    def rows(self, records: Records) -> Results:
        from besag.cli.side_by_side import apart
        from besag.engine import IDLE

        waiting: list[Record] = []

        def noted() -> Iterator[Any]:
            for record in records:
                if record is not None:
                    waiting.append(record)
                yield IDLE if record is None else record

        texts, _ = apart(noted(), ())
        for score in self.lm.score(texts, self.verb.method, entropy=True, **self.verb.options):
            record, values = waiting.pop(0), score.entropy
            there = values if score.status == Status.OK and values is not None and len(values) else None
            mean, most = (None, None) if there is None else (float(there.mean()), float(there.max()))
            yield record, [{
                "row": record.number, "text": record.text, "entropy": mean, "entropy_most": most, "tokens": len(score),
                "status": score.status,
            }]  # fmt: skip


# ---- one text at a time


@dataclass(frozen=True)
class Fill(_Modelled):
    """`besag fill`: the k likeliest fillings of all masks of a text together."""

    k: int = 5
    options: Mapping[str, Any] = field(default_factory=dict)  # of lm.fill
    number: str = "log_prob"
    trial: str = MASKED

    def open(self) -> Each:
        lm = self.model()

        def fill(record: Record) -> Iterator[Row]:
            found = lm.fill(record.text, self.k, **self.options)
            for rank, row in enumerate(found.rows, 1):
                yield {"rank": rank, "filled": row.text, "log_prob": row.log_prob, "prob": row.prob,
                       "status": found.status}  # fmt: skip

        return Each(lm, fill, ("rank", "filled", "log_prob", "prob", "status"))


@dataclass(frozen=True)
class Sample(_Modelled):
    """`besag sample`: texts drawn for the masks of a text. Each row has noise of its own, whatever runs beside it."""

    kernel: str = "gibbs"
    chains: int = 1
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)  # of lm.sample
    number: str = "chain"
    trial: str = MASKED

    def open(self) -> Each:
        from besag.noise import philox, whole_seed

        lm, seed = self.model(), whole_seed(self.seed) & (2**64 - 1)

        def sample(record: Record) -> Iterator[Row]:
            low, high, *_ = philox(
                (seed & 0xFFFFFFFF, seed >> 32), (record.number & 0xFFFFFFFF, record.number >> 32, 0, 0)
            )
            own = int(low) | int(high) << 32
            found = lm.sample(record.text, self.kernel, chains=self.chains, seed=own, **self.options)
            for number, text in enumerate(found.texts):
                yield {"chain": number, "sampled": text, "status": found.status}

        return Each(lm, sample, ("chain", "sampled", "status"))


class Each:
    """A verb that takes one text at a time; a text that it refuses says why."""

    def __init__(self, lm: LanguageModel, do: Callable[[Record], Iterator[Row]], names: tuple[str, ...]) -> None:
        self.lm, self.do, self.names = lm, do, names

    def rows(self, records: Records) -> Results:
        for record in records:
            if record is None:
                continue
            about: dict[str, object] = {"row": record.number, "text": record.text}
            try:
                yield record, [{**about, **row, "reason": ""} for row in self.do(record)]
            except BesagError as refusal:
                nothing = dict.fromkeys(self.names)
                yield record, [{**about, **nothing, "status": Status.REFUSED, "reason": str(refusal)}]


# ---- augment


@dataclass(frozen=True)
class Augment(_Modelled):
    """`besag augment`: copies of a text in which some words are others."""

    options: Mapping[str, Any] = field(default_factory=dict)  # of lm.augment
    added: tuple[str, ...] = ("original",)
    number: str = "similarity"

    def open(self) -> Augmenter:
        return Augmenter(self)


class Augmenter:
    def __init__(self, verb: Augment) -> None:
        from besag.samplers.editing.augment import Augmenting

        self.lm, self.how = verb.model(), Augmenting(**verb.options)

    def rows(self, records: Records) -> Results:
        block: list[Record] = []
        for record in records:
            if record is None:
                yield from self._block(block)
                block = []
            else:
                block.append(record)
        yield from self._block(block)

    def _block(self, block: list[Record]) -> Results:
        if not block:
            return
        found = self.how.run(self.lm.engine, [record.text for record in block], first=block[0].number - 1)
        for record in block:
            copies = [next(found) for _ in range(self.how.copies)]
            others = {"original": record.text, **record.others}
            yield record._replace(others=others), [copy_row(record.number, copy) for copy in copies]
