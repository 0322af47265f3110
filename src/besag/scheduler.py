"""Requests that come when they come: plans of any number of callers, run by one thread of a device.

    submit      from any thread, a plan → a future; results in any order
    call        from any thread, a function that the thread of the device runs between two batches

What all callers ask is pooled as one call of `Engine.run` pools what its plans ask. The oldest goes first, and whatever
arrives while a batch runs joins the next. `admission.py` says who is let in, `asking.py` makes an engine of it.

A plan that fails fails alone: a group that the network refuses is halved until the one to blame is found. Knows nothing
of HTTP.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from besag.admission import QUEUE_TOKENS, Queue, Stopped, Ticket
from besag.buckets import Asker, Group, Plan, Request
from besag.conditionals.contract import Given
from besag.engine import Engine
from besag.errors import BesagError
from besag.pooling import Flight, Work, load_of

T = TypeVar("T")


class _Asker(Asker[T]):
    """A plan whose result goes into a future, and whose failure does too."""

    def __init__(self, plan: Plan[T], engine: Engine, ticket: Ticket) -> None:
        super().__init__(plan)
        self.engine, self.ticket = engine, ticket
        self.future: Future[T] = Future()

    def gone(self) -> bool:
        """Does nobody wait for it?"""
        return self.done or self.future.cancelled() or self.ticket.why() is not None

    def go_on(self, step: Callable[[], Request]) -> Request | None:
        if self.gone():
            self.end(self.ticket.why())
            return None
        try:
            request = super().go_on(step)
        except Exception as why:
            self.end(why)
            return None
        if self.done:
            self._settle(lambda: self.future.set_result(self.result))  # type: ignore[arg-type]
        source = self.engine.source
        if request is None or request.given is not None or source is None:
            return request
        return request._replace(given=Given.one(source, len(request.ids)))

    def end(self, why: Exception | None) -> None:
        """Without a result."""
        if not self.done:
            self.done = True
            try:
                self.plan.close()
            except Exception as also:  # a plan that fails while it is closed has failed
                why = why or also
        self._settle(lambda: self.future.set_exception(why or Stopped("cancelled")))

    def _settle(self, told: Callable[[], None]) -> None:
        if not self.future.done() and self.future.set_running_or_notify_cancel():
            told()


class _Work(Work):
    """Of one model, for askers that must not be in each other's way."""

    def __init__(self, engine: Engine, note: Callable[[int, float], None]) -> None:
        super().__init__(engine)
        self.note = note

    def launch(self, group: Group) -> list[Flight]:
        tokens = int(group.lengths.sum())
        self.note(tokens, min(1.0, tokens / self.engine.batch_tokens))
        try:
            return super().launch(group)
        except Exception as why:
            if len(group.asks) == 1:
                asker = group.asks[0].asker
                self.pool.put(asker, asker.fail(why))
                return []
        half = len(group.asks) // 2
        return [f for part in (group.asks[:half], group.asks[half:]) for f in self.launch(self.pool.again(part))]


class Scheduler(Queue):
    """One thread that runs what any number of callers submit, on any number of models of one device."""

    def __init__(self, queue_tokens: int = QUEUE_TOKENS, name: str = "besag-device") -> None:
        super().__init__(queue_tokens)
        self.tokens = self.groups = 0  # through the network, in so many groups
        self._filled = 0.0
        self._arrived: deque[tuple[_Asker[Any], Request]] = deque()
        self._jobs: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._line: dict[_Asker[Any], None] = {}  # the oldest first
        self._works: dict[int, _Work] = {}
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # ---- for any thread

    def submit(
        self, engine: Engine, plan: Plan[T], *, ticket: Ticket | None = None, seconds: float | None = None
    ) -> Future[T]:
        """Run a plan among all others. Without a ticket it needs room of its own, and may be done within `seconds`."""
        asker = _Asker(plan, engine, ticket or Ticket(self, 0, seconds))
        request = asker.advance(None)  # here: whoever asks plans
        if request is None:
            return asker.future
        try:
            if ticket is None:
                own = asker.ticket = self.admit(load_of(request), seconds)
                asker.future.add_done_callback(lambda _: own.give_back())  # which holds no asker, nor its plan
            with self.changed:
                self._refuse_ended()
                self._arrived.append((asker, request))
                self.changed.notify()
        except BesagError:
            plan.close()
            raise
        asker.future.add_done_callback(lambda future: self.look_around() if future.cancelled() else None)
        return asker.future

    def call(self, job: Callable[[], T]) -> T:
        """What a function returns that the thread of the device runs between two batches."""
        future: Future[T] = Future()
        with self.changed:
            self._refuse_ended()
            self._jobs.append((job, future))
            self.changed.notify()
        return future.result()

    def close(self, drain: bool = True, seconds: float | None = None) -> bool:
        """Take nothing more, and finish what was accepted, or fail it as `Stopped`. Was all of it done in time?"""
        with self.changed:
            self.closing = True
            self.abandoned = self.stale = self.abandoned or not drain
            self.changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def fill(self) -> float:
        """The mean share of a full batch that a group had."""
        return self._filled / self.groups if self.groups else 0.0

    def _note(self, tokens: int, share: float) -> None:
        self.tokens, self.groups, self._filled = self.tokens + tokens, self.groups + 1, self._filled + share

    def _refuse_ended(self) -> None:
        """Who holds a ticket has been accepted, and is served until the thread ends."""
        if self._ended:
            raise Stopped("the scheduler has closed: it takes nothing more")

    # ---- the thread

    def _run(self) -> None:
        while self._next():
            self._serve_oldest()

    def _serve_oldest(self) -> None:
        """Nobody is remembered after that: a model that is put away while the thread waits is gone."""
        for asker in [asker for asker in self._line if asker.done]:
            del self._line[asker]
        oldest = next(iter(self._line), None)
        if oldest is not None:
            self._guarded(oldest.engine, lambda work: work.serve(oldest))

    def _next(self) -> bool:
        """Wait for something to do, take in what has arrived, and run one job. False: all is done, and closed."""
        with self.changed:
            while not (self._arrived or self._jobs or self._line or self.stale):
                if self.closing and (self.waiting == 0 or self.abandoned):
                    self._ended = True
                    return False
                self.changed.wait()
            arrived, self._arrived = self._arrived, deque()
            job = self._jobs.popleft() if self._jobs else None
            stale, self.stale = self.stale, False
        for asker, request in arrived:
            if asker.ticket.tokens:
                self._line[asker] = None
            else:
                self._line = {asker: None, **self._line}
            self._guarded(asker.engine, lambda work: work.add(asker, request))  # noqa: B023 - at once
        now = time.monotonic()
        if stale or any(now > asker.ticket.deadline for asker in self._line):
            self._weed()
        if job is not None:
            _do(*job)
        return True

    def _weed(self) -> None:
        for asker in self._line:
            if asker.gone():
                asker.end(asker.ticket.why())
        for work in self._works.values():
            work.pool.weed(lambda asker: asker.done)

    def _guarded(self, engine: Engine, step: Callable[[_Work], None]) -> None:
        """A step of the work of one model. What fails beyond any one plan fails for all who wait for this model."""
        model = id(engine.conditionals)
        if model not in self._works:
            self._works[model] = _Work(engine if engine.source is None else engine.given(None), self._note)
        try:
            step(self._works[model])
            self._works[model].feed_device()
        except Exception as why:
            del self._works[model]
            for asker in self._line:
                if asker.engine.conditionals is engine.conditionals:
                    asker.end(why)

    def forget(self, engine: Engine) -> None:
        """A model that nobody asks any more."""
        self.call(lambda: self._works.pop(id(engine.conditionals), None))


def _do(job: Callable[[], Any], future: Future[Any]) -> None:
    try:
        future.set_result(job())
    except BaseException as why:
        future.set_exception(why)
