"""Which batches a process sees, which step they belong to, and how far the run is then.

Micro-batch a of process r in step s has index (F(s) + a)·W + r, where F(s) = Σ_{s' < s} A(s') batches of each process
came before. Without a ramp A(s) = A in every step, and one process that accumulates two batches sees exactly what two
processes see that accumulate none.

With a ramp a step grows linearly, from one batch of each process to A of them (Cramming; Geiping and Goldstein 2023):

    A(s) = 1 + ⌊(A − 1) · min(1, t_s / ramp)⌋,     t_s the progress at the beginning of step s
"""

from __future__ import annotations

import multiprocessing
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from torch.utils.data import Sampler


class Counts(Protocol):
    def tokens_before(self, index: int) -> int: ...


def batches_at(progress: float, accumulate: int, ramp: float) -> int:
    """A(s): batches of each process in a step that begins at this progress."""
    if not ramp:
        return accumulate
    return 1 + int((accumulate - 1) * min(progress / ramp, 1.0) + 1e-9)  # 0.3 / 0.6 may be a little less than a half


@dataclass
class Clock:
    """Which step a batch belongs to, and how far the run is then.

    One of `steps` and `tokens` is the whole run; if neither is given, progress is what was published last. With a ramp
    nobody then knows which step a batch will belong to before it is made: `step` is where the run began to go on.
    """

    steps: int | None = None
    tokens: int | None = None
    accumulate: int = 1
    world: int = 1
    shared: Any = field(default_factory=lambda: multiprocessing.get_context().Value("d", 0.0))
    ramp: float = 0.0  # share of the run over which a step grows
    begun: tuple[int, int] = (0, 0)  # where a ramp goes on: a step, and how many batches of each process came before
    _first: list[int] = field(default_factory=list)  # F of the steps from there on, as far as they are worked out

    @property
    def timed(self) -> bool:
        return self.steps is None and self.tokens is None

    def step(self, index: int, counts: Counts | None = None) -> int:
        number = index // self.world
        if not self.ramp:
            return number // self.accumulate
        if self.timed:
            return self.begun[0]
        while self._last <= number:
            self._next(counts)
        return self.begun[0] + bisect_right(self._first, number) - 1

    def first(self, step: int, counts: Counts | None = None) -> int:
        """F: batches of each process before this step."""
        if not self.ramp:
            return step * self.accumulate
        while len(self._first) <= step - self.begun[0]:
            self._next(counts)
        return self._first[step - self.begun[0]]

    def opens(self, index: int) -> bool:
        """Is this the first batch of a step? For who goes through them in order: nothing is worked out ahead."""
        number, rank = divmod(index, self.world)
        if not self.ramp:
            return rank == 0 and number % self.accumulate == 0
        at = bisect_left(self._first, number)
        return rank == 0 and number == (self._first[at] if at < len(self._first) else self._last)

    def progress(self, index: int, counts: Counts) -> float:
        if self.timed:
            return float(min(self.shared.value, 1.0))
        return self._at(self.step(index, counts), counts)

    def publish(self, progress: float) -> None:
        """Say how far the run is; batches that were prepared before keep what they were told."""
        self.shared.value = progress

    def go_on(self, step: int, batches: int) -> None:
        """A ramp goes on with this step, after so many batches of each process."""
        self.begun, self._first = (step, batches), []

    @property
    def _last(self) -> int:
        return self._first[-1] if self._first else self.begun[1]

    def _next(self, counts: Counts | None) -> None:
        """Work out where one more step begins."""
        if not self._first:
            self._first = [self.begun[1]]
            return
        progress = self._at(self.begun[0] + len(self._first) - 1, counts)
        self._first.append(self._first[-1] + batches_at(progress, self.accumulate, self.ramp))

    def _at(self, step: int, counts: Counts | None) -> float:
        """Progress at the beginning of a step."""
        if self.steps is not None:
            return min(step / max(self.steps, 1), 1.0)
        assert counts is not None
        return min(counts.tokens_before(self.first(step, counts) * self.world) / max(self.tokens or 0, 1), 1.0)


class indices(Sampler[int]):  # noqa: N801  (reads as a function: the indices of …)
    """The batches of process `rank`, from `start_step` on, without end."""

    def __init__(self, start_step: int, rank: int = 0, world: int = 1, accumulate: int = 1) -> None:
        self.rank, self.world = rank, world
        self.start = start_step * accumulate * world + rank

    def __iter__(self) -> Iterator[int]:
        return count(self.start, self.world)

    def __contains__(self, index: int) -> bool:
        return index >= self.start and (index - self.rank) % self.world == 0
