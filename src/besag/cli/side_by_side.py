"""Several models and methods over one stream of texts, side by side and in constant memory.

Knows models and methods by what they say of themselves; files and formats are handled elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import tee
from typing import TYPE_CHECKING, Any

from besag.cli.rows import Label
from besag.errors import BesagError
from besag.files.inputs import Record

if TYPE_CHECKING:
    from besag.engine import Idle
    from besag.language_model import LanguageModel
    from besag.scores import LengthModel, Method, Score


@dataclasses.dataclass(frozen=True)
class Scorer:
    label: Label
    lm: LanguageModel
    method: Method
    options: Mapping[str, Any]  # of lm.score
    by_row: Sequence[str] = ()  # prefix, suffix or both, where each record has its own

    def score(self, records: Iterator[Record | Idle]) -> Iterator[Score]:
        texts, around = apart(records, self.by_row)
        return self.lm.score(texts, self.method, **{**self.options, **around})


def apart(
    records: Iterator[Record | Idle], by_row: Sequence[str]
) -> tuple[Iterator[str | Idle], dict[str, Iterator[str | None]]]:
    """The texts of records, and what stands around each: to be read as far as the texts were, and no further."""
    around: dict[str, deque[str | None]] = {name: deque() for name in by_row}

    def texts() -> Iterator[str | Idle]:
        for record in records:
            if isinstance(record, Record):
                for name, read in around.items():
                    read.append(getattr(record, name))
                yield record.text
            else:
                yield record

    def one_by_one(read: deque[str | None]) -> Iterator[str | None]:
        while read:
            yield read.popleft()

    return texts(), {name: one_by_one(read) for name, read in around.items()}


def pair(
    models: Sequence[LanguageModel],
    methods: Mapping[str, Method],
    common: Mapping[str, object],
    lengths: Sequence[LengthModel | None],
    given: Sequence[str] = (),  # what the user calls each model; "" for nothing
    by_row: Sequence[str] = (),
) -> list[Scorer]:
    """Every model with every method that fits it, so that masked and causal models can stand side by side.

    A model that no method fits, or a method that fits no model, is left in: scoring then says what is wrong with it.
    """
    names = column_names(list(zip(given or [""] * len(models), [lm.name for lm in models], strict=True)))
    wanted = [
        (place, method)
        for place, lm in enumerate(models)
        for method in methods.values()
        if method.sees == lm.conditionals.sees
        or all(other.sees != lm.conditionals.sees for other in methods.values())
        or all(method.sees != other.conditionals.sees for other in models)
    ]
    scorers = []
    for place, method in wanted:
        label = Label(
            names[place],
            method.name,
            estimated=getattr(method, "samples", "all") != "all",
            several_models=len(models) > 1,
            one_of_several=len(wanted) > 1,
        )
        options = {**common, "lengths": lengths[place] if method.normalised else None}
        scorers.append(Scorer(label, models[place], method, options, by_row))
    return scorers


def side_by_side(
    records: Iterator[Record | None], scorers: Sequence[Scorer], when_idle: Callable[[], None]
) -> Iterator[tuple[Record, tuple[Score, ...]]]:
    """Each record with its scores, in order.

    The scorers read copies of one stream and are asked in turn for one score each. None runs ahead of the others by
    more than an engine's window, so that is all the copies ever hold. What goes wrong with the input is raised after
    the scores of all that came before it.
    """
    from besag.engine import IDLE

    waiting: deque[Record] = deque()
    failures: list[BesagError] = []

    def source() -> Iterator[Record | Idle]:
        try:
            for record in records:
                if record is None:
                    when_idle()
                    yield IDLE
                else:
                    waiting.append(record)
                    yield record
        except BesagError as failure:
            failures.append(failure)

    copies = tee(source(), len(scorers))
    for scores in zip(*(scorer.score(copy) for scorer, copy in zip(scorers, copies, strict=True)), strict=True):
        yield waiting.popleft(), scores
    for failure in failures:
        raise failure


class Unscored:
    """The rows that have no score, for the last word on stderr."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.rows = 0
        self.first = ""
        self.states: Counter[str] = Counter()

    def note(self, record: Record, scores: Sequence[Score]) -> None:
        from besag.scores.show import reason

        bad = [score for score in scores if score.status != "ok"]
        if not bad:
            return
        if self.strict:
            raise BesagError(f"{record.where} was {reason(bad[0])} (--strict)")
        self.rows += 1
        self.first = self.first or record.where
        self.states.update({score.status for score in bad})

    def state(self) -> dict[str, Any]:
        """For a run that goes on from here."""
        return {"rows": self.rows, "first": self.first, "states": dict(self.states)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.rows, self.first, self.states = state["rows"], state["first"], Counter(state["states"])

    def __str__(self) -> str:
        states = ", ".join(f"{count} {status}" for status, count in self.states.items())
        rows = "1 row was" if self.rows == 1 else f"{self.rows} rows were"
        return f"{rows} not scored: {states}; the first is {self.first}"


def column_names(models: Sequence[tuple[str, str]]) -> list[str]:
    """What the columns of models are called, of each the name that was given ("" for none) and its own.

    One without a name is called by the last part of its path, by more parts where several end alike, and the second of
    two that are the same gets a number.

    >>> column_names([("", "runs/a/final"), ("", "runs/b/final"), ("big", "org/name"), ("", "org/name")])
    ['a/final', 'b/final', 'big', 'name']
    """
    parts = [[given] if given else own.rstrip("/\\").replace("\\", "/").split("/") for given, own in models]
    short = [_shortest(one, [other for other in parts if other != one]) for one in parts]
    earlier = [short[:place].count(name) for place, name in enumerate(short)]
    return [f"{name}#{count + 1}" if count else name for name, count in zip(short, earlier, strict=True)]


def _shortest(parts: Sequence[str], others: Sequence[Sequence[str]]) -> str:
    """As few of the last parts as no other has; all of them where there is no such."""
    for count in range(1, len(parts)):
        if all(list(other[-count:]) != list(parts[-count:]) for other in others):
            return "/".join(parts[-count:])
    return "/".join(parts)
