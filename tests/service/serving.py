"""Servers for tests: in this process on a free port, or asked without a socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install 'besag[serve]'")
pytest.importorskip("uvicorn", reason="the server is not installed: pip install 'besag[serve]'")
pytest.importorskip("httpx", reason="httpx is not installed")

import uvicorn
from fastapi.testclient import TestClient
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.table import Table
from besag.language_model import LanguageModel
from besag.service.app import create
from besag.service.desk import Desk
from besag.service.run import listening
from besag.service.shelf import Shelf


@cache
def bert() -> LanguageModel:
    network = (tiny("bert").eval(), vocabulary("bert").tokenizer)
    return besag.load(network, device="cpu", dtype="float32", progress=False, name="bert")


@cache
def table() -> LanguageModel:
    return besag.load(Table.random(3, 4), progress=False)


def desk(queue_tokens: int = 2**20, models: dict[str, Any] | None = None, **more: Any) -> Desk:
    return Desk(Shelf(models or {"bert": bert, "table": table}, queue_tokens=queue_tokens), **more)


@contextmanager
def asked(one: Desk | None = None) -> Iterator[TestClient]:
    """A client of the application itself."""
    one = one or desk()
    with TestClient(create(one), raise_server_exceptions=False) as client:
        yield client
    one.close(5)


@contextmanager
def served(one: Desk | None = None) -> Iterator[str]:
    """The address of a server."""
    one, socket = one or desk(), listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create(one), log_config=None, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        one.close(5)
        socket.close()
