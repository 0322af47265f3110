"""A server as a process: a socket, uvicorn, and an orderly end.

The socket comes first: a port that is taken is told before a model is loaded, and who comes while one is waits for it.
SIGTERM: no connection is taken any more, what was accepted is answered, and then the process ends.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import math
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from besag.errors import BesagError, require
from besag.service.desk import Desk

MOST_CONNECTIONS = 4096
KEEP_ALIVE = 10  # seconds
BACKLOG = 2048
TIDY = 10.0  # seconds
GONE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}  # s, s, times: who has gone without a word


def listening(host: str, port: int) -> socket.socket:
    """A socket of this address; a port that is taken is told as such."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        one = socket.socket(family, socket.SOCK_STREAM)
    except OSError as problem:
        raise BesagError(f"host={host!r} is no address of this machine: {problem}") from None
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # as all of these, for the connections it takes
    for name, value in GONE.items():
        if hasattr(socket, name):
            one.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    try:
        one.bind((host, port))
        one.listen(BACKLOG)  # whoever is told the address may ask
    except OSError as problem:
        one.close()
        if problem.errno == errno.EADDRNOTAVAIL:
            raise BesagError(f"host={host!r} is no address of this machine: 127.0.0.1 is, or 0.0.0.0 for all") from None
        raise BesagError(f"port={port} of {host} cannot be had ({problem.strerror}): give another") from None
    return one


def address(one: socket.socket) -> str:
    host, port = one.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def server(app: Any, drain: float, desk: Desk | None = None) -> Any:
    """uvicorn, with limits; at the end it waits for answers that long, and tells who comes then to come later."""
    uvicorn = require("uvicorn", extra="serve")
    from besag.service.connections import Impatient

    class Draining(uvicorn.Server):  # type: ignore[name-defined, misc]
        """Goes on taking connections while what was accepted is answered: a 503 says more than a refused connection."""

        until = math.inf

        async def on_tick(self, counter: int) -> bool:
            ended: bool = await super().on_tick(counter)
            if not ended or desk is None:
                return ended
            desk.draining = True
            self.until = min(self.until, time.monotonic() + drain)
            return self.force_exit or desk.open == 0 or time.monotonic() >= self.until

    config = uvicorn.Config(
        app, http=Impatient, log_config=None, access_log=False, timeout_keep_alive=KEEP_ALIVE,
        limit_concurrency=MOST_CONNECTIONS, timeout_graceful_shutdown=int(drain), server_header=False,
    )  # fmt: skip
    return Draining(config)


def serve(
    desk: Desk, one: socket.socket, *, drain: float = 30.0, cors: Sequence[str] = (), names: Sequence[str] = ()
) -> None:
    """Serve who comes to a socket until a signal ends it, and answer what was accepted within `drain` seconds.

    Requests may be sent to this machine's local names, to the address of the socket, and to `names`.
    """
    from besag.service.app import LOCAL, create

    ended = threading.Event()
    threading.Thread(target=tidy, args=(ended,), name="besag-tidy", daemon=True).start()
    try:
        hosts = {*LOCAL, one.getsockname()[0], *names}
        server(create(desk, cors, hosts), drain, desk).run(sockets=[one])
    finally:
        ended.set()
        desk.close(drain)


def tidy(ended: threading.Event, every: float = TIDY) -> None:
    """Give back to the system what was freed, every so often, where its allocator can be told to (glibc's).

    Batches differ in size and threads have heaps of their own, so that what is free lies in pieces, which are kept.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    while trim is not None and not ended.wait(every):
        trim(0)


def log_to_stderr() -> None:
    """One line a request, without its texts."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("besag.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "besag.service" else logging.WARNING)
