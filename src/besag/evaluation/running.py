"""A suite through a model: items in, rows out, in order. Knows neither what is asked nor how it is judged."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from besag.errors import BesagError, quoted
from besag.evaluation.asking import Model
from besag.evaluation.source import find, needed
from besag.evaluation.suite import Item, Suite
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
