"""Requests that come when they come: plans of any number of callers, run by one thread of a device.

    submit      from any thread, a plan → a future; results in any order
    admit       a ticket for a caller who will submit much: so many tokens, a deadline, one way to cancel
    asking      an engine for that caller: every verb runs on it as on any engine, in the batches of all callers

What all callers ask is pooled as one call of `Engine.run` pools what its plans ask. The oldest goes first, and whatever
arrives while a batch runs joins the next. Steps of chains and whole vocabularies, which nobody can share, run batch by
batch in between. The queue is bounded in tokens: beyond, it says no and how long to wait.

A plan that fails fails alone: a group that the network refuses is halved until the one to blame is found. Knows nothing
of HTTP.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

import torch

from besag.buckets import Asker, Group, Plan, Request
from besag.conditionals.contract import Given
from besag.engine import Engine, Idle
from besag.errors import BesagError
from besag.pooling import Flight, Work, load_of

T = TypeVar("T")

QUEUE_TOKENS = 2**20  # that may be accepted and not answered
AHEAD = 64  # plans of one caller that may wait: its memory does not grow with its texts


class Busy(BesagError):
    """There is no room now: come again after so many seconds."""

    def __init__(self, why: str, retry_after: int) -> None:
        super().__init__(f"{why}: try again in {retry_after} s")
        self.retry_after = retry_after


class TooLarge(BesagError):
    """More than the queue could ever hold."""


class Stopped(BesagError):
    """Not answered, because nobody waits for it: cancelled, past its deadline, or the scheduler has closed."""


class Late(Stopped):
    """Past its deadline."""


class Ticket:
    """What a caller was let in with. It holds its place in the queue until it is given back."""

    def __init__(self, scheduler: Scheduler, tokens: int, seconds: float | None) -> None:
        self.scheduler, self.tokens, self.seconds = scheduler, tokens, seconds
        self.began = time.monotonic()
        self.deadline = math.inf if seconds is None else self.began + seconds
        self.cancelled = self.returned = False

    def cancel(self) -> None:
        """Whatever was submitted with it and is not done fails as `Stopped`; what others asked goes on."""
        self.cancelled = True
        self.scheduler.look_around()

    def why(self) -> Stopped | None:
        """Why nothing more is done for it, if so."""
        if self.cancelled or self.scheduler.abandoned:
            return Stopped("cancelled")
        if time.monotonic() > self.deadline:
            return Late(f"not done within {self.seconds:g} s: ask for less at a time, or give it longer")
        return None

    def check(self) -> None:
        if (why := self.why()) is not None:
            raise why

    def give_back(self) -> None:
        self.scheduler.take_back(self)

    def __enter__(self) -> Ticket:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


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


class Scheduler:
    """One thread that runs what any number of callers submit, on any number of models of one device."""

    def __init__(self, queue_tokens: int = QUEUE_TOKENS, name: str = "besag-device") -> None:
        self.queue_tokens = queue_tokens
        self.waiting = 0  # tokens accepted and not given back
        self.served, self.busy = 0, 0.0  # tokens given back, and the seconds in which any were here
        self.tokens = self.groups = 0  # through the network, in so many groups
        self._filled = self._since = 0.0
        self._arrived: deque[tuple[_Asker[Any], Request]] = deque()
        self._jobs: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._line: dict[_Asker[Any], None] = {}  # the oldest first
        self._works: dict[int, _Work] = {}
        self._closing = self._stale = self._ended = False
        self.abandoned = False  # nobody waits for anything
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # ---- the door, for any thread

    def admit(self, tokens: int, seconds: float | None = None) -> Ticket:
        """Room for so many tokens, to be done within so many seconds; or `Busy`, or `TooLarge`.

        For a question that weighs nothing there is always room, and it goes first: is all well?
        """
        with self._changed:
            self._refuse_closed()
            if tokens > self.queue_tokens:
                raise TooLarge(
                    f"this asks for about {tokens:,} tokens to be run, and {self.queue_tokens:,} may wait here: ask "
                    "for less at a time"
                )
            if tokens and self.waiting + tokens > self.queue_tokens:
                wait = self._seconds(self.waiting + tokens - self.queue_tokens)
                raise Busy(f"{self.waiting:,} tokens wait already", wait)
            if self.waiting == 0:
                self._since = time.monotonic()
            self.waiting += tokens
        return Ticket(self, tokens, seconds)

    def take_back(self, ticket: Ticket) -> None:
        with self._changed:
            if ticket.returned:
                return
            ticket.returned = True
            now = time.monotonic()
            self.waiting -= ticket.tokens
            self.served += ticket.tokens
            self.busy, self._since = self.busy + now - self._since, now

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
                asker.ticket = self.admit(load_of(request), seconds)
                asker.future.add_done_callback(lambda _: asker.ticket.give_back())
            with self._changed:
                self._refuse_closed(accepted=True)
                self._arrived.append((asker, request))
                self._changed.notify()
        except BesagError as why:
            asker.end(why)
            raise
        asker.future.add_done_callback(lambda future: self.look_around() if future.cancelled() else None)
        return asker.future

    def call(self, job: Callable[[], T]) -> T:
        """What a function returns that the thread of the device runs between two batches."""
        future: Future[T] = Future()
        with self._changed:
            self._refuse_closed(accepted=True)
            self._jobs.append((job, future))
            self._changed.notify()
        return future.result()

    def asking(self, engine: Engine, ticket: Ticket) -> Asking:
        """An engine for one caller: what it is asked runs here, in the batches of all."""
        return Asking(engine, self, ticket)

    def look_around(self) -> None:
        """Somebody has gone."""
        with self._changed:
            self._stale = True
            self._changed.notify()

    def close(self, drain: bool = True, seconds: float | None = None) -> bool:
        """Take nothing more, and finish what was accepted, or fail it as `Stopped`. Was all of it done in time?"""
        with self._changed:
            self._closing = True
            self.abandoned = self._stale = self.abandoned or not drain
            self._changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def fill(self) -> float:
        """The mean share of a full batch that a group had."""
        return self._filled / self.groups if self.groups else 0.0

    def _note(self, tokens: int, share: float) -> None:
        self.tokens, self.groups, self._filled = self.tokens + tokens, self.groups + 1, self._filled + share

    def _refuse_closed(self, accepted: bool = False) -> None:
        """Who holds a ticket has been accepted, and is served to the end."""
        if self._ended or (self._closing and not accepted):
            raise Stopped("the scheduler has closed: it takes nothing more")

    def _seconds(self, tokens: int) -> int:
        """How long until so many tokens are gone, by what was served so far."""
        busy = self.busy + time.monotonic() - self._since
        return min(600, max(1, math.ceil(tokens * busy / self.served))) if self.served else 1

    # ---- the thread

    def _run(self) -> None:
        while self._next():
            for asker in [asker for asker in self._line if asker.done]:
                del self._line[asker]
            oldest = next(iter(self._line), None)
            if oldest is not None:
                self._guarded(oldest.engine, lambda work: work.serve(oldest))  # noqa: B023 - at once

    def _next(self) -> bool:
        """Wait for something to do, take in what has arrived, and run one job. False: all is done, and closed."""
        with self._changed:
            while not (self._arrived or self._jobs or self._line or self._stale):
                if self._closing and (self.waiting == 0 or self.abandoned):
                    self._ended = True
                    return False
                self._changed.wait(timeout=0.05 if self._closing else None)
            arrived, self._arrived = self._arrived, deque()
            job = self._jobs.popleft() if self._jobs else None
            stale, self._stale = self._stale, False
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

    def in_turn(self, batch: Callable[[], int]) -> int:
        """Each batch in turn with those of others, so that a long chain stands in nobody's way."""
        self.ticket.check()
        inference = torch.is_inference_mode_enabled()  # a setting of this thread

        def run() -> int:
            with torch.inference_mode(inference):
                return Engine.in_turn(self, batch)

        return self.scheduler.call(run)

    def _result(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError:
            raise self.ticket.why() or Stopped("cancelled") from None
