"""A request from its door to its answer: admitted, run in a thread, cancelled when nobody waits for it any more.

    model → ticket (429, 413) → a verb on an engine of the scheduler → an answer, or why there is none

Knows neither routes nor schemas.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request

from besag.admission import Stopped, Ticket
from besag.asking import Asking
from besag.engine import Engine
from besag.language_model import LanguageModel
from besag.service.keys import Keys
from besag.service.metrics import Metrics
from besag.service.shelf import Shelf

T = TypeVar("T")
Weight = int | Callable[[LanguageModel], int]  # tokens, or those that the model makes of it

THREADS = 64
MOST_SECONDS = 3600.0

log = logging.getLogger("besag.service")


@dataclass
class Limits:
    body: int = 8 * 2**20  # bytes
    seconds: float = 300.0  # for a request that sets no deadline


@dataclass
class Desk:
    shelf: Shelf
    limits: Limits = field(default_factory=Limits)
    keys: Keys = field(default_factory=Keys)
    shows_texts: bool = False
    metrics: Metrics = field(default_factory=Metrics)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "besag-request"))
    urgent: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "besag-health"))
    loaders: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "besag-load"))
    draining: bool = False
    open: int = 0  # requests that are not answered yet

    async def answer(
        self,
        request: Request,
        model: str,
        weight: Weight,
        verb: Callable[[LanguageModel], T],
        begun: Callable[[Ticket], Any] | None = None,
    ) -> T:
        """What a verb says of a model, as soon as its turn comes."""
        if self.draining:
            raise Stopped("the server is shutting down")
        loop = asyncio.get_running_loop()
        entered = self.shelf.borrowed(model)
        # a model that is there is borrowed at once; to load one takes seconds, in a thread of its own
        lm, scheduler = (
            entered.__enter__()
            if self.shelf.loaded(model) is not None
            else await loop.run_in_executor(self.loaders, entered.__enter__)
        )
        try:
            tokens = weight if isinstance(weight, int) else weight(lm)
            with scheduler.admit(tokens, seconds(request, self.limits.seconds)) as ticket:
                if begun is not None:
                    begun(ticket)
                engine = Asking(lm.engine, scheduler, ticket)
                threads = self.threads if tokens else self.urgent  # what weighs nothing waits for nobody
                work = loop.run_in_executor(threads, lambda: _unless_stopped(ticket, verb, through(lm, engine)))
                watch = asyncio.ensure_future(_watched(request, ticket))
                try:
                    return await work
                except asyncio.CancelledError:
                    ticket.cancel()
                    raise
                finally:
                    watch.cancel()
        finally:
            entered.__exit__(None, None, None)

    def gauges(self) -> dict[str, tuple[str, str, float]]:
        """The state of the queue, of all devices together."""
        schedulers = list(self.shelf.schedulers.values())
        return {
            "queue_tokens": ("gauge", "Tokens accepted and not answered.", sum(one.waiting for one in schedulers)),
            "queue_tokens_most": ("gauge", "Tokens that may be.", sum(one.queue_tokens for one in schedulers)),
            "tokens_total": ("counter", "Tokens through the networks.", sum(one.tokens for one in schedulers)),
            "batches_total": ("counter", "Groups of pooled questions.", sum(one.groups for one in schedulers)),
            "batch_fill": ("gauge", "Mean share of a full batch.", _mean([one.fill for one in schedulers])),
            "busy_seconds_total": ("counter", "Seconds with work.", sum(one.busy for one in schedulers)),
            "models_loaded": (
                "gauge",
                "Models in memory.",
                sum(self.shelf.loaded(n) is not None for n in self.shelf.names),
            ),
        }

    def close(self, within: float) -> bool:
        self.draining = True
        done = self.shelf.close(within)
        for threads in (self.threads, self.urgent, self.loaders):
            threads.shutdown(wait=False)
        return done


def through(lm: LanguageModel, engine: Engine) -> LanguageModel:
    """The same model asked through another engine."""
    other = copy.copy(lm)
    other.engine = engine
    return other


def seconds(request: Request, usual: float) -> float:
    """The deadline of a request: its header Besag-Deadline, in seconds, or the usual one."""
    try:
        value = float(request.headers.get("besag-deadline", usual))
    except ValueError:
        return usual
    return min(value, MOST_SECONDS) if value > 0 else usual  # not a number compares false


def _unless_stopped(ticket: Ticket, verb: Callable[[LanguageModel], T], lm: LanguageModel) -> T:
    ticket.check()  # it may have waited for a thread
    return verb(lm)


async def _watched(request: Request, ticket: Ticket) -> None:
    """Wait for the client to go away: its body has been read, so nothing else comes."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    ticket.cancel()


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
