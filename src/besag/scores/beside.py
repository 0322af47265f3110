"""What goes with each text of a call: one for all of them, or one for each, taken as the texts come.

As many must be given as there are texts. Of lists that is known at the start; of streams at the end of the one that
ends first, and then it is said which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set, Sized
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from besag.arrays import Ints
from besag.characters import is_text
from besag.conditionals.contract import Conditionals
from besag.errors import BesagError
from besag.results.status import Status
from besag.sources import read_sources, too_long

Contexts: TypeAlias = str | Iterable[str | None]  # None: this text has none, and is not scored

RIGHT = "give one for all texts, or one for each"
_NONE_LEFT: Any = object()


class Beside:
    """Prefixes, suffixes or words: `name` as the caller knows it; `total` texts, where that is known."""

    def __init__(self, name: str, given: Any, total: int | None = None) -> None:
        self.name, self.given, self.taken = name, given, 0
        several = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set)
        self._rest: Iterator[Any] | None = iter(given) if several else None  # what is neither is refused as no text
        if several and isinstance(given, Sized) and total is not None and len(given) != total:
            texts = "1 text" if total == 1 else f"{total:,} texts"
            raise BesagError(f"{name}: {len(given):,} were given for {texts}: {RIGHT}")

    @property
    def for_all(self) -> bool:
        return self._rest is None

    def take(self, count: int) -> Any:
        """What goes with the next texts: a list, or the one thing for all."""
        if self._rest is None:
            return self.given
        found = list(islice(self._rest, count))
        self.taken += len(found)
        if len(found) < count:
            raise BesagError(f"{self.name} ended after {self.taken:,}, and there are more texts: {RIGHT}")
        return found

    def finish(self) -> None:
        """The texts have ended: has this?"""
        if self._rest is not None and next(self._rest, _NONE_LEFT) is not _NONE_LEFT:
            raise BesagError(f"the texts ended after {self.taken:,}, and there is more in {self.name}: {RIGHT}")


def contexts(beside: Iterable[Beside], count: int) -> tuple[list[Any], set[int]]:
    """The prefixes and suffixes of the next texts, and which of these texts lack one of theirs."""
    taken = [one.take(count) for one in beside]
    lacking = {place for part in taken if isinstance(part, list) for place, one in enumerate(part) if one is None}
    filled = [[one or "" for one in part] if lacking and isinstance(part, list) else part for part in taken]
    return filled, lacking


def sources(beside: Beside, conditionals: Conditionals, count: int) -> tuple[list[Ints], dict[int, Status]]:
    """The token ids of the sources of the next texts, and which of these texts have none that can be given, and why."""
    taken = beside.take(count)
    texts = taken if isinstance(taken, list) else [taken] * count
    unfit = {
        place: Status.NO_CONTEXT if text is None else Status.UNDECODABLE
        for place, text in enumerate(texts)
        if text is None or (isinstance(text, str) and not is_text(text))
    }
    distinct = dict.fromkeys(text for place, text in enumerate(texts) if place not in unfit)
    read = dict(zip(distinct, read_sources(conditionals, list(distinct)), strict=True))
    found = [np.empty(0, np.int64) if place in unfit else read[text] for place, text in enumerate(texts)]
    long = {place: Status.LONG_SOURCE for place, ids in enumerate(found) if too_long(conditionals, ids)}
    return found, unfit | long
