"""A connection on which nothing moves is closed, so that nobody holds a place, or the memory of an answer, for nothing.

Every `LOOK` seconds it is looked at: one that waits for a request to come whole, or for its answer to be read, and has
not moved since the last look, has had its time. While a request is worked on, its client may be as silent as its
deadline allows. Knows one connection; how long a body takes is the business of the door.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

LOOK = 30.0  # seconds


class Impatient(H11Protocol):
    """HTTP as uvicorn speaks it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._seen: tuple[object, int] | None = None
        self._next = self.loop.call_later(LOOK, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._next.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle, unread = self.cycle, self.transport.get_write_buffer_size()  # the last request, and bytes of its answer
        waits = unread > 0 or not cycle or cycle.response_complete
        if waits and self._seen == (cycle, unread):
            self.transport.abort()
            return
        self._seen = (cycle, unread) if waits else None
        self._next = self.loop.call_later(LOOK, self._look)
