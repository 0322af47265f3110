"""What a request will take, told before anything is read: about how many tokens run through the network.

A token is taken for three letters. That is too many for most texts, and good enough to say no: the queue is bounded by
what is estimated here, one text or many alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from besag.places.reading import MASK

LETTERS = 3
AUTO = 256  # candidates of a place, where nobody says how many
ONE_PASS = frozenset({"unmasked", "maskless", "causal"})
REPEATS = ("orders", "samples")  # options of methods that run a text several times


class Sight(NamedTuple):
    """What is before the network at a time: so many tokens of a text at most, and those of a source beside them."""

    most: int | None = None
    source: int = 0
    mask: str | None = None  # as the model writes it

    def tokens(self, length: int) -> int:
        """Of a sequence out of a text of so many."""
        return (length if self.most is None else min(length, self.most)) + self.source

    def masks(self, text: str) -> int:
        return sum(text.count(mask) for mask in {MASK, self.mask or MASK})


WHOLE = Sight()


def tokens(text: str) -> int:
    return 2 + -(-len(text) // LETTERS)


def scores(texts: Iterable[int], method: str, options: Mapping[str, object], sight: Sight = WHOLE) -> int:
    """Of texts of so many tokens each."""
    repeats = 1
    for name in REPEATS:
        value = options.get(name, 1)
        repeats *= value if isinstance(value, int) and value > 0 else 1
    if method in ONE_PASS:
        return repeats * sum(length + sight.source for length in texts)
    return repeats * sum(length * sight.tokens(length) for length in texts)


def joint(text: str, places: int | None, candidates: object, sight: Sight = WHOLE) -> int:
    """Of some places; None: of its masks."""
    places = sight.masks(text) if places is None else places
    each = candidates if isinstance(candidates, int) and candidates > 0 else AUTO
    return sight.tokens(tokens(text)) * (1 if places < 2 else 2 * each * (places - 1))


def dependence(text: str, candidates: int, distance: int | None, sight: Sight = WHOLE) -> int:
    length = tokens(text)
    return sight.tokens(length) * length * candidates * min(length, 2 * distance if distance else length)


def sample(text: str | None, length: int | None, chains: int, steps: int | None, sight: Sight = WHOLE) -> int:
    size = tokens(text) if text is not None else 2 + (length or 1)
    free = sight.masks(text) if text is not None else (length or 1)
    return sight.tokens(size) * chains * (steps or 10 * max(1, free))


def translation(sources: Iterable[str], tried: int, passes: int | None, sight: Sight = WHOLE) -> int:
    """Of so many targets of each source, as long as it is, and read as often as they have tokens if nobody says."""
    lengths = [sight.tokens(tokens(source)) for source in sources]
    return sum(length + tried * length * (passes or length) for length in lengths)
