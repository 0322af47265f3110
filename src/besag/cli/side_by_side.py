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

    def score(self, texts: Iterator[str | Idle]) -> Iterator[Score]:
        return self.lm.score(texts, self.method, **self.options)


def pair(
    models: Sequence[LanguageModel],
    methods: Mapping[str, Method],
    common: Mapping[str, object],
    lengths: Sequence[LengthModel | None],
) -> list[Scorer]:
    """Every model with every method that fits it, so that masked and causal models can stand side by side.

    A model that no method fits, or a method that fits no model, is left in: scoring then says what is wrong with it.
    """
    names = _distinct([lm.name for lm in models])
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
        scorers.append(Scorer(label, models[place], method, options))
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

    def texts() -> Iterator[str | Idle]:
        try:
            for record in records:
                if record is None:
                    when_idle()
                    yield IDLE
                else:
                    waiting.append(record)
                    yield record.text
        except BesagError as failure:
            failures.append(failure)

    copies = tee(texts(), len(scorers))
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


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of models, the second of two equal ones with a number."""
    earlier = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}#{count + 1}" if count else name for name, count in zip(names, earlier, strict=True)]
