"""Which batches a process sees, which step they belong to, and how far the run is then.

Micro-batch a of process r in step s has index (s·A + a)·W + r: one process that accumulates two batches sees exactly
what two processes see that accumulate none.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from torch.utils.data import Sampler


class Counts(Protocol):
    def tokens_before(self, index: int) -> int: ...


@dataclass
class Clock:
    """Which step a batch belongs to, and how far the run is then.

    One of `steps` and `tokens` is the whole run; if neither is given, progress is what was published last.
    """

    steps: int | None = None
    tokens: int | None = None
    accumulate: int = 1
    world: int = 1
    shared: Any = field(default_factory=lambda: multiprocessing.get_context().Value("d", 0.0))

    @property
    def each(self) -> int:
        """Batches of one step, over all processes."""
        return self.accumulate * self.world

    def step(self, index: int) -> int:
        return index // self.each

    def progress(self, index: int, counts: Counts) -> float:
        step = self.step(index)
        if self.steps is not None:
            return min(step / max(self.steps, 1), 1.0)
        if self.tokens is not None:
            return min(counts.tokens_before(step * self.each) / max(self.tokens, 1), 1.0)
        return float(min(self.shared.value, 1.0))

    def publish(self, progress: float) -> None:
        """Say how far the run is; batches that were prepared before keep what they were told."""
        self.shared.value = progress


class indices(Sampler[int]):  # noqa: N801  (reads as a function: the indices of …)
    """The batches of process `rank`, from `start_step` on, without end."""

    def __init__(self, start_step: int, rank: int = 0, world: int = 1, accumulate: int = 1) -> None:
        self.rank, self.world = rank, world
        self.start = start_step * accumulate * world + rank

    def __iter__(self) -> Iterator[int]:
        return count(self.start, self.world)

    def __contains__(self, index: int) -> bool:
        return index >= self.start and (index - self.rank) % self.world == 0
