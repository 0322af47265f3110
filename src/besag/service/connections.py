"""A connection on which nothing moves is closed, so that nobody holds a place, or the memory of an answer, for nothing.

Every `LOOK` seconds it is looked at: one that waits for a request to come whole, or for its answer to be read, and has
not moved since the last look, has had its time. While a request is worked on, its client may be as silent as its
deadline allows. Knows one connection; how long a body takes is the business of the door.
"""

from __future__ import annotations

import asyncio

from h11 import RemoteProtocolError
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

LOOK = 30.0  # seconds


class Strict(ReceiveBuffer):
    """What has come, of which h11 reads the heads of requests: those that say their length twice are rejected.

    h11 takes the first of two equal lengths, and chunks for a length. A proxy before it may do otherwise, and then the
    two disagree on where a request ends.
    """

    def maybe_extract_lines(self) -> list[bytearray] | None:
        lines = super().maybe_extract_lines()
        names = [bytes(line.partition(b":")[0]).lower() for line in lines or ()]
        lengths = [name for name in names if name in (b"content-length", b"transfer-encoding")]
        if len(lengths) > 1:
            raise RemoteProtocolError("a request says its length once, by Content-Length or Transfer-Encoding")
        return lines


class Impatient(H11Protocol):
    """HTTP as uvicorn speaks it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.conn._receive_buffer = Strict()
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
