"""Servers for tests: in this process on a free port, or asked without a socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install 'besag[serve]'")
pytest.importorskip("uvicorn", reason="the server is not installed: pip install 'besag[serve]'")
pytest.importorskip("httpx", reason="httpx is not installed")

from fastapi.testclient import TestClient
from tests.networks import tiny, vocabulary

import besag
from besag.conditionals.table import Table
from besag.language_model import LanguageModel
from besag.service.app import create
from besag.service.desk import Desk
from besag.service.run import address, listening, server
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
def asked(one: Desk | None = None, cors: Sequence[str] = ()) -> Iterator[TestClient]:
    """A client of the application itself."""
    one = one or desk()
    with TestClient(create(one, cors), "http://localhost", raise_server_exceptions=False) as client:
        yield client
    one.close(5)


@contextmanager
def served(one: Desk | None = None) -> Iterator[str]:
    """The address of a server."""
    one = one or desk()
    try:
        with running(create(one)) as at:
            yield at
    finally:
        one.close(5)


@contextmanager
def running(app: Any) -> Iterator[str]:
    """The address of any application."""
    socket = listening("127.0.0.1", 0)
    one = server(app, drain=5)
    thread = threading.Thread(target=one.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    while not one.started:
        time.sleep(0.01)
    try:
        yield address(socket)
    finally:
        one.should_exit = True
        thread.join(20)
        socket.close()


def emptied(one: Desk, within: float = 10) -> bool:
    """Does nothing wait any more, soon?"""
    [scheduler] = one.shelf.schedulers.values()
    end = time.monotonic() + within
    while scheduler.waiting and time.monotonic() < end:
        time.sleep(0.02)
    return scheduler.waiting == 0
