"""Who is let in: a queue bounded in tokens, and the ticket that a caller holds while it is served.

    waiting + tokens ≤ queue_tokens     a ticket
    tokens > queue_tokens               `TooLarge`: it could never be
    else                                `Busy`, and in how many seconds there should be room

Knows counts, clocks and one lock. Refuses to know what is asked, and who runs it.
"""

from __future__ import annotations

import math
import threading
import time

from besag.errors import BesagError

QUEUE_TOKENS = 2**20  # that may be accepted and not answered
LONGEST_WAIT = 600  # seconds that anybody is told to wait


class Busy(BesagError):
    """There is no room now: come again after so many seconds."""

    def __init__(self, why: str, retry_after: int) -> None:
        super().__init__(f"{why}: try again in {retry_after} s")
        self.retry_after = retry_after


class TooLarge(BesagError):
    """More than the queue could ever hold."""


class Stopped(BesagError):
    """Not answered, because nobody waits for it: cancelled, past its deadline, or the queue has closed."""


class Late(Stopped):
    """Past its deadline."""


class Ticket:
    """What a caller was let in with. It holds its place in the queue until it is given back."""

    def __init__(self, queue: Queue, tokens: int, seconds: float | None) -> None:
        self.queue, self.tokens, self.seconds = queue, tokens, seconds
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.cancelled = self.returned = False

    def cancel(self) -> None:
        """Whatever was submitted with it and is not done fails as `Stopped`; what others asked goes on."""
        self.cancelled = True
        self.queue.look_around()

    def why(self) -> Stopped | None:
        """Why nothing more is done for it, if so."""
        if self.cancelled or self.queue.abandoned:
            return Stopped("cancelled")
        if time.monotonic() > self.deadline:
            return Late(f"not done within {self.seconds:g} s: ask for less at a time, or give it longer")
        return None

    def check(self) -> None:
        if (why := self.why()) is not None:
            raise why

    def give_back(self) -> None:
        self.queue.take_back(self)

    def __enter__(self) -> Ticket:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


class Queue:
    """So many tokens may wait. Whoever derives from it runs what they stand for; `changed` guards all that is here."""

    def __init__(self, queue_tokens: int = QUEUE_TOKENS) -> None:
        self.queue_tokens = queue_tokens
        self.waiting = 0  # tokens accepted and not given back
        self.served, self.busy = 0, 0.0  # tokens given back, and the seconds in which any were here
        self.closing = False  # nothing more is taken
        self.abandoned = False  # nobody waits for anything
        self.stale = False  # somebody has gone since this was last looked at
        self.changed = threading.Condition()
        self._since = 0.0

    def admit(self, tokens: int, seconds: float | None = None) -> Ticket:
        """Room for so many tokens, to be done within so many seconds; or `Busy`, or `TooLarge`.

        For a question that weighs nothing there is always room, and it goes first: is all well?
        """
        with self.changed:
            if self.closing:
                raise Stopped("the queue has closed: it takes nothing more")
            if tokens > self.queue_tokens:
                raise TooLarge(
                    f"this asks for about {tokens:,} tokens to be run, and {self.queue_tokens:,} may wait here: ask "
                    "for less at a time, or let more wait (--queue-tokens)"
                )
            if tokens and self.waiting + tokens > self.queue_tokens:
                wait = self._until_gone(self.waiting + tokens - self.queue_tokens)
                raise Busy(f"{self.waiting:,} tokens wait already", wait)
            if self.waiting == 0:
                self._since = time.monotonic()
            self.waiting += tokens
        return Ticket(self, tokens, seconds)

    def take_back(self, ticket: Ticket) -> None:
        with self.changed:
            if ticket.returned:
                return
            ticket.returned = True
            now = time.monotonic()
            self.waiting -= ticket.tokens
            self.served += ticket.tokens
            self.busy, self._since = self.busy + now - self._since, now
            if self.closing:
                self.changed.notify()

    def look_around(self) -> None:
        """Somebody has gone."""
        with self.changed:
            self.stale = True
            self.changed.notify()

    def _until_gone(self, tokens: int) -> int:
        """Seconds until so many tokens are gone, by what was served so far."""
        busy = self.busy + time.monotonic() - self._since
        return min(LONGEST_WAIT, max(1, math.ceil(tokens * busy / self.served))) if self.served else 1
