"""Clients who are slow, who say nothing, who have gone, who send far too much: nobody else is the worse for them."""

from __future__ import annotations

import json
import socket
import threading
import time
import tracemalloc
from urllib.parse import urlsplit

import httpx
import pytest
from tests.laws import Arbitrary
from tests.service.serving import desk, running, served

import besag
from besag.service import connections
from besag.service.run import GONE, address, listening

BODY = json.dumps({"texts": "the cat sat on the mat"}).encode()
HEAD = b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(connections, "LOOK", 0.3)


def connected(at: str) -> socket.socket:
    parts = urlsplit(at)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def rest(one: socket.socket, size: int = 2**16) -> bytes:
    """All that comes until the other side closes."""
    found = b""
    try:
        while part := one.recv(size):
            found += part
    except ConnectionResetError:
        pass
    return found


def test_who_says_nothing_is_let_go_and_others_are_served(impatient):
    with served() as at:
        silent = [connected(at) for _ in range(40)]
        for one in silent[20:]:
            one.sendall(HEAD[:30])  # half a head
        assert httpx.post(f"{at}/score", content=BODY, headers={"Content-Type": "application/json"}).status_code == 200
        assert [rest(one) for one in silent] == [b""] * 40
        assert httpx.get(f"{at}/health").status_code == 200
        for one in silent:
            one.close()


def test_who_sends_and_reads_slowly_has_his_answer(impatient):
    with served() as at, connected(at) as one:
        one.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        for letter in BODY:
            one.sendall(bytes([letter]))
            time.sleep(0.02)  # longer than two looks in all
        answer = rest(one, size=8)
    assert answer.startswith(b"HTTP/1.1 200")
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["result"]["status"] == "ok"


def test_who_waits_in_silence_for_his_answer_has_it(impatient):
    class Slow(Arbitrary):
        def rows(self, questions):
            time.sleep(1)  # longer than two looks
            return super().rows(questions)

    lm = besag.load(Slow(), progress=False)
    with served(desk(models={"slow": lambda: lm})) as at:
        assert httpx.post(f"{at}/score", json={"texts": "s0"}, timeout=20).status_code == 200


def test_an_answer_that_nobody_reads_is_not_kept(impatient):
    ended = threading.Event()

    async def endless(scope, receive, send):
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 2**25, "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    with running(endless) as at, connected(at) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert ended.wait(20)


def test_a_body_of_100_mb_is_refused_in_a_sentence_and_never_held():
    with served() as at, connected(at) as one:
        one.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % 10**8)
        tracemalloc.start()
        part = bytes(10**6)
        for _ in range(100):
            one.sendall(part)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        answer = rest(one)
        assert httpx.get(f"{at}/health").status_code == 200
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"send less at a time" in answer
    assert most < 10**7


def test_who_asks_whether_to_send_so_much_is_told_at_once():
    with served() as at, connected(at) as one:
        one.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % 10**8)
        assert rest(one).startswith(b"HTTP/1.1 413")


def test_who_has_gone_without_a_word_is_looked_for():
    with listening("127.0.0.1", 0) as one, connected(address(one)), one.accept()[0] as taken:
        assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for name, value in GONE.items():
            if hasattr(socket, name):
                assert taken.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value
