"""Side by side over one stream: in step, in order, in bounded memory, whatever each scorer's window is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from besag.cli.side_by_side import side_by_side
from besag.engine import Idle
from besag.errors import BesagError
from besag.files.inputs import Record


@dataclass
class Windowed:
    """Reads up to `window` texts ahead, as an engine does, and is flushed when the source is idle."""

    name: str
    window: int

    def score(self, records: Iterator[Record | Idle]) -> Iterator[Any]:
        ahead: list[str] = []
        for text in records:
            if isinstance(text, Record):
                ahead.append(text.text)
            while ahead and (isinstance(text, Idle) or len(ahead) >= self.window):
                yield f"{self.name} {ahead.pop(0)}"
        yield from (f"{self.name} {text}" for text in ahead)


def numbered(numbers: Iterator[int]) -> Iterator[Record]:
    return (Record(number, f"line {number}", str(number), {}) for number in numbers)


def test_an_endless_stream_in_bounded_memory() -> None:
    read = 0

    def endless() -> Iterator[int]:
        nonlocal read
        while True:
            read += 1
            yield read

    scorers: list[Any] = [Windowed("a", 3), Windowed("b", 50), Windowed("c", 17)]
    stream = side_by_side(numbered(endless()), scorers, lambda: None)
    for expected in range(1, 1000):
        record, scores = next(stream)
        assert (record.number, scores) == (expected, tuple(f"{name} {expected}" for name in "abc"))
        assert read - expected < 50  # the widest window is all that is ever held


def test_an_idle_source_flushes_all_of_them() -> None:
    flushed: list[int] = []
    done: list[int] = []

    def source() -> Iterator[Record | None]:
        yield from numbered(iter([1, 2]))
        yield None
        yield None
        assert done == [1, 2]  # both are out before anything more is read
        yield from numbered(iter([3]))

    scorers: list[Any] = [Windowed("a", 9), Windowed("b", 30)]
    for record, _ in side_by_side(source(), scorers, lambda: flushed.append(len(done))):
        done.append(record.number)
    assert done == [1, 2, 3]
    assert flushed == [0, 2]


def test_a_failing_source_fails_after_what_came_before() -> None:
    def source() -> Iterator[Record]:
        yield from numbered(iter([1, 2, 3]))
        raise BesagError("line 4 is wrong")

    scorers: list[Any] = [Windowed("a", 9), Windowed("b", 2)]
    stream = side_by_side(source(), scorers, lambda: None)
    assert [next(stream)[0].number for _ in range(3)] == [1, 2, 3]
    with pytest.raises(BesagError, match="line 4 is wrong"):
        next(stream)
