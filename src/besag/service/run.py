"""A server as a process: a socket, uvicorn, and an orderly end.

SIGTERM: no connection is taken any more, what was accepted is answered, and then the process ends.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from besag.errors import BesagError, require
from besag.service.desk import Desk

MOST_CONNECTIONS = 4096
KEEP_ALIVE = 10  # seconds
BACKLOG = 2048


def listening(host: str, port: int) -> socket.socket:
    """A socket of this address; a port that is taken is told as such."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        one = socket.socket(family, socket.SOCK_STREAM)
    except OSError as problem:
        raise BesagError(f"host={host!r} is no address of this machine: {problem}") from None
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind((host, port))
        one.listen(BACKLOG)  # whoever is told the address may ask
    except OSError as problem:
        one.close()
        raise BesagError(f"port={port} of {host} cannot be had ({problem.strerror}): give another") from None
    return one


def serve(
    desk: Desk,
    host: str,
    port: int,
    *,
    drain: float = 30.0,
    cors: Sequence[str] = (),
    ready: Callable[[str], None] = lambda address: None,
) -> bool:
    """Serve until a signal ends it. `ready` is told the address. Was all that was accepted answered?"""
    uvicorn = require("uvicorn", extra="serve")
    from besag.service.app import create

    app: Any = create(desk)
    if cors:
        from fastapi.middleware.cors import CORSMiddleware

        app.add_middleware(CORSMiddleware, allow_origins=list(cors), allow_methods=["*"], allow_headers=["*"])
    one = listening(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{one.getsockname()[1]}"
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_keep_alive=KEEP_ALIVE, limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=int(drain), server_header=False,
    )  # fmt: skip
    done = False
    try:
        ready(address)
        uvicorn.Server(config).run(sockets=[one])
    finally:
        done = desk.close(drain)
        one.close()
    return done


def log_to_stderr() -> None:
    """One line a request, without its texts."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("besag.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "besag.service" else logging.WARNING)
