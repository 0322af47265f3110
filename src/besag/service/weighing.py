"""What a request will take, told before anything is read: about how many tokens run through the network.

A token is taken for three letters. That is too many for most texts, and good enough to say no: the queue is bounded by
what is estimated here, one text or many alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LETTERS = 3
AUTO = 256  # candidates of a place, where nobody says how many
ONE_PASS = frozenset({"unmasked", "maskless", "causal"})
REPEATS = ("orders", "samples")  # options of methods that run a text several times


def tokens(text: str) -> int:
    return 2 + -(-len(text) // LETTERS)


def scores(texts: Iterable[int], method: str, options: Mapping[str, object]) -> int:
    """Of texts of so many tokens each."""
    repeats = 1
    for name in REPEATS:
        value = options.get(name, 1)
        repeats *= value if isinstance(value, int) and value > 0 else 1
    return repeats * sum(length if method in ONE_PASS else length * length for length in texts)


def joint(text: str, places: int, candidates: object) -> int:
    each = candidates if isinstance(candidates, int) and candidates > 0 else AUTO
    return tokens(text) * (1 if places < 2 else 2 * each * (places - 1))


def dependence(text: str, candidates: int, distance: int | None) -> int:
    length = tokens(text)
    return length * length * candidates * min(length, 2 * distance if distance else length)


def sample(text: str | None, length: int | None, chains: int, steps: int | None, masks: int) -> int:
    size = tokens(text) if text is not None else 2 + (length or 1)
    free = masks if text is not None else (length or 1)
    return size * chains * (steps or 10 * max(1, free))
