"""The texts of all items through one stream of the engine, each distinct one once. Knows texts and what stands around
them; refuses to know suites.

Items are taken up in blocks; within one, those of about one length stand together, and the texts of an item side by
side: so batches fill, and what two texts of an item ask alike (their difference hidden) runs once. A text that comes
again in a later block is not asked again: its score is kept until its last use.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from besag.engine import IDLE, Engine, Idle
from besag.scores import Method, Score
from besag.scores.scoring import Scoring

TOGETHER = 4096  # items that are sorted by length at a time


class Ask(NamedTuple):
    """A text to be scored, and what stands around it: shown, not scored."""

    text: str
    prefix: str = ""
    suffix: str = ""

    @property
    def size(self) -> int:
        return len(self.text) + len(self.prefix) + len(self.suffix)


@runtime_checkable
class Model(Protocol):
    """A `LanguageModel`: what suites may ask. Its verbs stand on a higher floor."""

    engine: Engine
    conditionals: Any
    vocabulary: Any
    name: str

    @property
    def score(self) -> Any: ...
    @property
    def choose(self) -> Any: ...
    @property
    def marginals(self) -> Any: ...
    @property
    def joint(self) -> Any: ...
    @property
    def fill(self) -> Any: ...


class HasAsks(Protocol):
    @property
    def asks(self) -> tuple[Ask, ...]: ...


T = TypeVar("T", bound=HasAsks)


def scores_of(
    engine: Engine, items: Sequence[T], method: Method, options: Mapping[str, Any] | None = None,
    block: int | None = None,
) -> Iterator[tuple[T, tuple[Score, ...]]]:  # fmt: skip
    """Each item with the scores of its asks, in order. `block`: the engine finishes so many items before the next."""
    left = Counter(ask for item in items for ask in item.asks)  # uses still to come
    known: dict[Ask, Score] = {}
    size = block or TOGETHER
    blocks = [items[start : start + size] for start in range(0, len(items), size)]
    waiting: deque[tuple[Sequence[T], int]] = deque()  # blocks on the way, and how many scores each still lacks
    order: deque[Ask] = deque()  # what was asked and has no score yet

    def stream() -> Iterator[Ask | Idle]:
        begun: set[Ask] = set()
        for members in blocks:
            by_size = sorted(members, key=lambda item: max((ask.size for ask in item.asks), default=0))
            new = [ask for ask in dict.fromkeys(chain.from_iterable(item.asks for item in by_size)) if ask not in begun]
            begun.update(new)
            waiting.append((members, len(new)))
            order.extend(new)
            yield from new
            if block is not None:
                yield IDLE

    def done() -> Iterator[tuple[T, tuple[Score, ...]]]:
        while waiting and not waiting[0][1]:
            for item in waiting.popleft()[0]:
                yield item, tuple(known[ask] for ask in item.asks)
                left.subtract(item.asks)
                for ask in set(item.asks):
                    if not left[ask]:
                        del known[ask]

    for score in _scored(engine, stream(), method, options or {}, left):
        yield from done()  # blocks that had nothing new to ask
        known[order.popleft()] = score
        waiting[0] = (waiting[0][0], waiting[0][1] - 1)
        yield from done()
    yield from done()


def _scored(
    engine: Engine, asks: Iterator[Ask | Idle], method: Method, options: Mapping[str, Any], every: Mapping[Ask, int]
) -> Iterator[Score]:
    """Scores in the order of the asks. What no ask has (a prefix) is not streamed with them."""
    around: dict[str, deque[str]] = {
        name: deque() for name in ("prefix", "suffix") if any(getattr(ask, name) for ask in every)
    }

    def texts() -> Iterator[str | Idle]:
        for ask in asks:
            if isinstance(ask, Ask):
                for name, queue in around.items():
                    queue.append(getattr(ask, name))
                yield ask.text
            else:
                yield ask

    def one_by_one(queue: deque[str]) -> Iterator[str]:
        while queue:
            yield queue.popleft()

    given: dict[str, Any] = {"words": "tokenizer", "prefix": "", "suffix": "", "separator": " ", **options}
    given |= {name: one_by_one(queue) for name, queue in around.items()}
    scoring = Scoring(
        engine.conditionals, method, given["words"], given["prefix"], given["suffix"], given["separator"], math.e,
        given.get("rank", False), given.get("entropy", False), None, False,
    )  # fmt: skip
    return scoring.run(engine, texts(), len(every))
