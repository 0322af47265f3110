"""A suite through a model: items in, rows out, in order. Knows neither what is asked nor how it is judged."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from besag.errors import BesagError, quoted
from besag.evaluation.asking import Model
from besag.evaluation.evaluation import Evaluation, Part
from besag.evaluation.source import find, needed
from besag.evaluation.suite import Item, Row, Suite
from besag.results.words import dtype_name
from besag.scores import Method
from besag.scores import method as method_named

OK = "ok"


def items_of(suite: Suite, data: str | os.PathLike[str] | None = None, limit: int | None = None) -> list[Item]:
    """The items of a suite, at most the first `limit` of each group; there must be some, and no id twice."""
    source = find(suite, data)
    taken: Counter[str] = Counter()
    known: dict[str, str] = {}
    found = []
    for item in suite.read(source):
        if item.id in known:
            raise BesagError(
                f"two items of {suite.name!r} have the id {quoted(item.id)}: {known[item.id]}, and {item.where}"
            )
        known[item.id] = item.where
        taken[item.group] += 1
        if limit is None or taken[item.group] <= limit:
            found.append(item)
    if not found:
        raise BesagError(f"{source.name} holds no item of {suite.name!r}. {needed(suite)}")
    return found


def methods_for(suite: Suite, lm: Model, chosen: Sequence[Method] | None = None) -> list[Method | None]:
    """With which methods a suite asks a model: those that are said, or its own; [None] where it takes none."""
    causal = lm.conditionals.sees == "left"
    if not suite.methods and not suite.causal_methods:
        if chosen:
            raise BesagError(
                f"the suite {suite.name!r} asks for {suite.asked}, and takes no method of scoring: leave out "
                f"{', '.join(one.name for one in chosen)}"
            )
        return [None]
    usual = suite.causal_methods if causal else suite.methods
    if not usual:
        kind, other = ("causal", "masked") if causal else ("masked", "causal")
        raise BesagError(f"the suite {suite.name!r} needs a {other} model, and {lm.name!r} is a {kind} one")
    return list(chosen or [method_named(name) for name in usual])


def rows_of(
    suite: Suite, lm: Model, method: Method | None, items: Sequence[Item], block: int | None = None
) -> Iterator[dict[str, Any]]:
    """A row for each item, in order: id, group, status, and what the suite makes of its answers."""
    for item, given, status in suite.answers(lm, items, method, block):
        about = {"id": item.id, "group": item.group, "status": str(status)}
        yield {**about, **suite.judge(item, given)} if status == OK else about


@dataclass(frozen=True)
class Task:
    """One model with one method through one suite."""

    suite: Suite
    items: Sequence[Item]
    lm: Model
    model: str  # what results call it
    method: Method | None

    @property
    def about(self) -> dict[str, str]:
        """What says which part a row belongs to."""
        return {
            "suite": self.suite.name,
            "model": self.model,
            "method": "" if self.method is None else self.method.name,
        }

    def rows(self, skip: int = 0, block: int | None = None) -> Iterator[dict[str, Any]]:
        """Of the items after the first `skip`."""
        return rows_of(self.suite, self.lm, self.method, self.items[skip:], block)

    def part(self, rows: Sequence[Row]) -> Part:
        dtype = dtype_name(self.lm.conditionals.dtype)
        return Part(self.suite, self.model, self.about["method"], dtype, rows)


def tasks(
    suites: Sequence[Suite],
    models: Mapping[str, Model],
    chosen: Sequence[Method] | None,
    data: str | os.PathLike[str] | None,
    limit: int | None,
) -> list[Task]:
    """Every suite with every model, and of the chosen methods those that fit it, so that masked and causal models can
    stand side by side. A model that none fits is left in: scoring then says what is wrong with it.
    """
    if data is not None and len(suites) > 1 and os.path.isfile(data):
        raise BesagError(
            f"{os.fspath(data)!r} is a file, and there are several suites: give a folder with one for each"
        )
    found = []
    for suite in suites:
        items = items_of(suite, data, limit)
        for name, lm in models.items():
            fit = [one for one in chosen or () if one.sees == lm.conditionals.sees]
            for method in methods_for(suite, lm, fit or chosen):
                found.append(Task(suite, items, lm, name, method))
    return found


def evaluations(done: Sequence[tuple[Task, Sequence[Row]]]) -> list[Evaluation]:
    """The parts of each suite together."""
    parts: dict[str, list[Part]] = {}
    for task, rows in done:
        parts.setdefault(task.suite.name, []).append(task.part(rows))
    return [Evaluation(own[0].suite, tuple(own)) for own in parts.values()]
