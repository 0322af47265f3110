"""What a suite is: where its items come from, what is asked of a model, how an answer is judged, how rows add up.

One file in `suites/` is one suite, and nothing else knows it. It says

    read(source)             source (a folder, a file, a hub name) → items, each with an id and a group
    item.asks                the texts to score for it, perhaps within context; all items share one stream of the engine
    judge(item, scores)      → its row: numbers and words that are saved, and all that is ever counted
    metrics(rows)            → metrics: recipes by which the rows become numbers with errors (`metrics.py`)

A suite that asks something else than scores overrides `answers`. A row holds texts, numbers and lists of them (never
None), for it is written as a line of JSON and read again: metrics are computed from rows alone. Of a tie each half
counts, unless the published metric says otherwise, and then `ties` says so.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from besag.checks import checked
from besag.evaluation.asking import Ask, Model, scores_of
from besag.evaluation.metrics import Metric
from besag.evaluation.source import Source
from besag.registry import Named, Registry
from besag.results.status import Status
from besag.scores import Method, Score

Row: TypeAlias = Mapping[str, Any]

HALF = "a tie counts ½"


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One question of a suite."""

    id: str  # no other of the suite has it
    group: str  # what --limit counts in, and what figures are given for: a paradigm, a relation, a kind of bias
    asks: tuple[Ask, ...] = ()  # none where the suite has `answers` of its own
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what `judge` needs; of the suite's own making
    where: str = ""  # "pairs.tsv, line 3", for messages


class Answer(NamedTuple):
    """What came of an item: whatever the suite's `judge` takes, or why there is nothing."""

    item: Item
    given: Sequence[Any]  # of the default `answers`: a Score for each ask, in their order
    status: Status = Status.OK


@dataclasses.dataclass(frozen=True)
class Suite(Named, ABC):
    """Subclass, decorate with `@register`, and it is in the Python API, the command line and the documentation.

    The fields of the dataclass are its options: `besag eval NAME --set NAME=VALUE`.
    """

    folder: ClassVar[str]  # of its data, within BESAG_DATA
    files: ClassVar[str]  # what lies in there: "one JSON Lines file a paradigm, as published"
    origin: ClassVar[str]  # from whom: an address or a package
    licence: ClassVar[str]  # of the data
    asked: ClassVar[str] = "scores of texts"  # in a word or two, for lists
    hub: ClassVar[str] = ""  # the name of the data set on the Hugging Face hub, where there is one in this layout
    methods: ClassVar[tuple[str, ...]] = ("pll",)  # of scoring, where none is said; () for a suite that takes none
    causal_methods: ClassVar[tuple[str, ...]] = ("causal",)  # for causal models; () where it cannot ask them
    scoring: ClassVar[Mapping[str, Any]] = {}  # of `score`, for all asks: words, entropy, rank, separator
    ties: ClassVar[str] = HALF

    @abstractmethod
    def read(self, source: Source) -> Iterable[Item]:
        """The items, in a fixed order. What is wrong with a file is a BesagError that quotes it."""

    @abstractmethod
    def judge(self, item: Item, given: Sequence[Any]) -> Row:
        """The row of an item whose answers are all there. Its id, group and status are added to it."""

    @abstractmethod
    def metrics(self, rows: Sequence[Row]) -> list[Metric]:
        """Return what is computed from the rows that have numbers, the headline first; never called without a row."""

    def documents(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        """What the suite's own publishers want to be sent: documents of JSON by name, made of rows with numbers."""
        return {}

    def answers(
        self, lm: Model, items: Sequence[Item], method: Method | None, block: int | None = None
    ) -> Iterator[Answer]:
        """Answers in the order of the items; by default the scores of all their asks, each distinct one asked once.

        `lm` is a `LanguageModel` with all its verbs, `method` None where the suite takes none. A run that can go on is
        noted after every `block` items, so the engine should have finished those before it begins with others; a suite
        that asks for one item after the other need not care.
        """
        assert method is not None, "a suite that takes no method has answers of its own"
        for item, found in scores_of(lm.engine, items, method, self.scoring, block):
            yield Answer(item, found, next((one.status for one in found if one.status != "ok"), Status.OK))


SUITES: Registry[type[Suite]] = Registry("suite")
register = SUITES.register


@checked
def suite(name: str, **options: object) -> Suite:
    """The suite of that name, with its options set; a wrong one is answered with the nearest right one."""
    import besag.evaluation.suites  # noqa: F401 (whose files register themselves)

    return SUITES.find(name)(**options)


__all__ = [
    "SUITES", "Answer", "Ask", "Item", "Method", "Metric", "Model", "Row", "Score", "Source", "Suite", "register",
    "scores_of", "suite",
]  # fmt: skip
