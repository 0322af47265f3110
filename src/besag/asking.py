"""An engine for one caller among many: every verb runs on it as on any engine, in the batches of all callers.

Plans are submitted to the scheduler, a bounded number ahead. Steps of chains and whole vocabularies, which nobody can
share, run batch by batch between those of others. Knows one ticket; refuses to know who else is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from typing import TypeVar

import torch

from besag.admission import Stopped, Ticket
from besag.buckets import Plan
from besag.engine import Engine, Idle
from besag.scheduler import Scheduler

T = TypeVar("T")

AHEAD = 64  # plans of one caller that may wait: its memory does not grow with its texts


class Asking(Engine):
    """An engine whose questions are run by a scheduler, for the holder of one ticket."""

    def __init__(self, engine: Engine, scheduler: Scheduler, ticket: Ticket) -> None:
        super().__init__(engine.conditionals, batch_tokens=engine.batch_tokens, progress=False)
        self.sources, self.source = engine.sources, engine.source
        self.engine, self.scheduler, self.ticket = engine, scheduler, ticket

    def run(
        self, plans: Iterable[Plan[T] | Idle], total: int | None = None, size: Callable[[T], int] = lambda _: 1
    ) -> Iterator[T]:
        """As ever: results in the order of the plans, here from the batches of all callers."""
        line: deque[Future[T]] = deque()
        engine = self.engine.given(self.source)
        try:
            for plan in plans:
                if not isinstance(plan, Idle):
                    line.append(self.scheduler.submit(engine, plan, ticket=self.ticket))
                while line and (isinstance(plan, Idle) or line[0].done() or len(line) >= AHEAD):
                    yield self._result(line.popleft())
            while line:
                yield self._result(line.popleft())
        finally:
            for future in line:
                future.cancel()

    def check_wanted(self) -> None:
        self.ticket.check()

    def in_turn(self, batch: Callable[[], T]) -> T:
        """Each batch in turn with those of others, so that a long chain stands in nobody's way."""
        self.ticket.check()
        inference = torch.is_inference_mode_enabled()  # a setting of this thread

        def run() -> T:
            with torch.inference_mode(inference):
                return Engine.in_turn(self, batch)

        return self.scheduler.call(run)

    def _result(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError:
            raise self.ticket.why() or Stopped("cancelled") from None
