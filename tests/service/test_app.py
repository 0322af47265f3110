"""The door of the server: keys on every route, sizes, statuses, deadlines, a client that goes away, what is counted."""

import asyncio
import json
import logging
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import httpx
import pytest
from tests.laws import Arbitrary, Held
from tests.service.serving import TestClient, asked, bert, desk, emptied, served

import besag
from besag.service import app as module
from besag.service.app import create
from besag.service.desk import Desk, Limits, seconds
from besag.service.keys import Keys
from besag.service.metrics import Metrics
from besag.service.run import address as address_of
from besag.service.run import listening, server
from besag.service.shelf import Shelf

TEXT = "the cat sat on the mat"
KEY = "a key of the lab, long enough"


def run(work):
    """In a thread of its own: another test may have left a loop running in this one, as a browser does."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def held(queue_tokens: int = 2**20) -> tuple[Held, Desk]:
    law = Held()
    lm = besag.load(law, progress=False)
    return law, Desk(Shelf({"held": lambda: lm}, queue_tokens=queue_tokens))


def routes(one: Desk) -> list[tuple[str, str]]:
    app = create(one)
    paths = app.openapi()["paths"]
    return [(method, path) for path, methods in paths.items() for method in methods]


# ---- keys


def test_every_route_asks_for_a_key(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n")
    one = desk(keys=Keys(file))
    known = [*routes(one), ("get", "/docs"), ("get", "/openapi.json"), ("get", "/nowhere"), ("options", "/score")]
    assert len(known) > 15
    with asked(one) as client:
        for method, path in known:
            for header in ({}, {"Authorization": "Bearer wrong"}):
                answer = client.request(method, path, headers=header)
                assert answer.status_code == 401, (method, path)
                assert answer.headers["WWW-Authenticate"] == "Bearer"
        good = {"Authorization": f"Bearer {KEY}"}
        assert client.get("/health", headers=good).status_code == 200
        assert client.post("/score", json={"texts": TEXT}, headers=good).status_code == 200


# ---- bodies


def test_a_body_that_is_too_large_is_refused():
    with asked(desk(limits=Limits(body=1000))) as client:
        answer = client.post("/score", json={"texts": "x" * 2000})
        assert (answer.status_code, "1,000 bytes" in answer.text) == (413, True)
        pieces = iter([b'{"texts": "'] + [b"x" * 100] * 20)  # no length is said
        assert client.post("/score", content=pieces).status_code == 413


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"texts": NaN}', b"[" * 5000, b'{"texts": 3}'])
def test_a_broken_body_is_refused(content):
    with asked() as client:
        answer = client.post("/score", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == (400 if content.startswith(b"[[") else 422)
        assert answer.json()["error"]["message"]


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "READING", 0.1)
    with served() as address:
        host, port = address.removeprefix("http://").split(":")

        async def half() -> bytes:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            await writer.drain()
            answer = await asyncio.wait_for(reader.read(200), 10)
            writer.close()
            return answer

        assert b" 408 " in run(half())
        assert httpx.get(f"{address}/health").status_code == 200


def test_a_body_that_drips_has_a_total_time(monkeypatch):
    monkeypatch.setattr(module, "BODY", 0.5)
    with served() as address:
        began, status = time.monotonic(), b""
        with closing(raw(address)) as one:
            one.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
            while not status and time.monotonic() < began + 10:  # a letter every tenth of a second, each in good time
                one.sendall(b"x")
                one.settimeout(0.1)
                with suppress(TimeoutError):
                    status = one.recv(200)
        assert b" 408 " in status
        assert time.monotonic() < began + 5
        assert httpx.get(f"{address}/health").status_code == 200


MANY = b"1" * 5000  # more digits than Python makes an integer of


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/score", b'{"texts": "the cat", "options": {"seed": %b}}'),
        ("/sample", b'{"text": "the [MASK]", "seed": %b}'),
        ("/sample", b'{"text": "the [MASK]", "steps": %b}'),
        ("/fill", b'{"text": "the [MASK]", "k": -%b}'),
        ("/v1/completions", b'{"prompt": [%b], "echo": true}'),
        ("/detokenize", b'{"tokens": [%b]}'),
        ("/explorer/write", b'{"text": "the [MASK]", "chains": %b}'),
    ],
)
def test_an_integer_of_thousands_of_digits_is_no_fault(route, body):
    with asked() as client:
        answer = client.post(route, content=body % MANY, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["message"]


def raw(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 2\r\nContent-Length: 2",
        b"Content-Length: 2\r\ncontent-length: 3",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2",
        b"Content-Length: 2, 3",
        b"Content-Length: " + MANY,
    ],
)
def test_a_request_that_says_its_length_twice_is_rejected(lengths):
    with served() as address:
        with closing(raw(address)) as one:
            one.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\n" + lengths + b"\r\n\r\n{}")
            assert b" 400 " in one.recv(200)
            assert one.recv(200) is not None  # and the connection ends
        assert httpx.get(f"{address}/health").status_code == 200


# ---- hosts


@pytest.mark.parametrize(
    ("hosts", "host", "path", "status"),
    [
        ({"localhost", "127.0.0.1", "::1"}, "localhost:8000", "/models", 200),
        ({"localhost", "127.0.0.1", "::1"}, "LOCALHOST", "/models", 200),
        ({"localhost", "127.0.0.1", "::1"}, "127.0.0.1:8000", "/models", 200),
        ({"localhost", "127.0.0.1", "::1"}, "[::1]:8000", "/models", 200),
        ({"localhost", "127.0.0.1", "::1"}, "evil.example", "/models", 421),
        ({"localhost", "127.0.0.1", "::1"}, "evil.example:8000", "/health", 421),
        ({"localhost", "127.0.0.1", "::1"}, "localhost.evil.example", "/", 421),
        ({"localhost", "127.0.0.1", "::1"}, "10.0.0.7:8000", "/models", 421),
        ({"localhost", "127.0.0.1", "::1"}, "10.0.0.7:8000", "/health", 200),  # a probe
        ({"10.0.0.7", "localhost"}, "10.0.0.7:8000", "/models", 200),
        ({"0.0.0.0"}, "10.0.0.7:8000", "/models", 200),  # all addresses of the machine
        ({"0.0.0.0"}, "evil.example", "/models", 421),
        ({"localhost", "GPU.lab"}, "gpu.lab:8000", "/models", 200),
    ],
)
def test_a_request_for_another_host_is_misdirected(hosts, host, path, status):
    """A page of another site that lets its name point to this machine would reach the server with that name."""
    with TestClient(create(desk(), hosts=hosts), raise_server_exceptions=False) as client:
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == status
        if status == 421:
            assert host.partition(":")[0] in answer.json()["error"]["message"]
            assert "--host-name" in answer.json()["error"]["message"]


def test_a_request_without_a_host_is_answered():
    with served() as address, closing(raw(address)) as one:
        one.sendall(b"GET /models HTTP/1.0\r\n\r\n")
        assert b" 200 " in one.recv(200)


# ---- the end


def test_who_comes_while_the_server_ends_is_told_to_come_later():
    law, one = held()
    socket_, found = listening("127.0.0.1", 0), []
    ending = server(create(one), 10, one)
    at = address_of(socket_)
    thread = threading.Thread(target=ending.run, kwargs={"sockets": [socket_]}, daemon=True)
    thread.start()
    asking = threading.Thread(target=lambda: found.append(httpx.post(f"{at}/score", json={"texts": "s0"}, timeout=30)))
    asking.start()
    assert law.asked.wait(20)
    ending.handle_exit(signal.SIGTERM, None)
    while not one.draining:
        time.sleep(0.02)
    for route in ("/models", "/health"):
        answer = httpx.get(at + route)
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) >= 1
    law.go.set()
    asking.join(20)
    assert found[0].status_code == 200
    thread.join(20)
    assert not thread.is_alive()
    one.close(5)


# ---- the queue


def test_a_full_queue_is_a_429_with_retry_after_and_what_was_accepted_is_answered():
    law, one = held(queue_tokens=100)
    answers = []
    with served(one) as address:
        body = {"texts": "s0 s1 s2 s0 s1"}  # 7 tokens by its letters: 49

        def ask():
            answers.append(httpx.post(f"{address}/score", json=body, timeout=30))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        while one.shelf.schedulers == {} or next(iter(one.shelf.schedulers.values())).waiting < 98:
            time.sleep(0.01)
        for body_ in (body, {"texts": [body["texts"]]}):
            refused = httpx.post(f"{address}/score", json=body_)
            assert refused.status_code == 429
            assert int(refused.headers["Retry-After"]) >= 1
        assert httpx.get(f"{address}/metrics").status_code == 200  # nobody is in its way
        law.go.set()
        for thread in threads:
            thread.join()
        assert [answer.status_code for answer in answers] == [200, 200]
        assert httpx.post(f"{address}/score", json=body).status_code == 200


def test_a_deadline_is_a_504():
    law, one = held()
    with served(one) as address:
        threading.Thread(target=lambda: law.asked.wait(30) and not time.sleep(0.3) and law.go.set()).start()
        answer = httpx.post(f"{address}/score", json={"texts": "s0 s1"}, headers={"Besag-Deadline": "0.1"}, timeout=20)
        assert (answer.status_code, answer.json()["error"]["type"]) == (504, "Late")
        assert httpx.post(f"{address}/score", json={"texts": "s0 s1"}, timeout=20).status_code == 200


@pytest.mark.parametrize(("said", "expected"), [("5", 5), ("1e9", 3600), ("-1", 7), ("nan", 7), ("soon", 7)])
def test_a_deadline_is_a_number_of_seconds(said, expected):
    class Request:
        headers = {"besag-deadline": said}  # noqa: RUF012

    assert seconds(Request(), 7) == expected


def test_a_client_that_goes_away_cancels_its_chain():
    one = desk()
    with served(one) as address:
        body = {"text": "the [MASK] sat", "steps": 100_000, "chains": 1}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{address}/sample", json=body, timeout=0.5)
        assert emptied(one)


# ---- faults


def test_health_is_a_real_forward():
    class Broken(Arbitrary):
        broken = False

        def rows(self, questions):
            rows = super().rows(questions)
            return rows * float("nan") if self.broken else rows

    law = Broken()
    lm = besag.load(law, progress=False)
    with asked(desk(models={"law": lambda: lm})) as client:
        assert client.get("/health").json()["status"] == "ok"
        law.broken = True
        answer = client.get("/health")
        assert answer.status_code == 500
        assert "NaN" in answer.json()["error"]["message"]


def test_a_fault_is_a_500_without_details_and_the_next_is_answered(caplog):
    class Faulty(Arbitrary):
        def rows(self, questions):
            if questions.ids.shape[1] == 3:
                raise RuntimeError("the secret of the server")
            return super().rows(questions)

    lm = besag.load(Faulty(), progress=False)
    with asked(desk(models={"law": lambda: lm})) as client, caplog.at_level(logging.CRITICAL):
        answer = client.post("/score", json={"texts": "s0 s1 s2"})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert client.post("/score", json={"texts": "s0 s1"}).status_code == 200


def test_routes_that_are_not_there():
    with asked() as client:
        assert client.get("/nowhere").json()["error"]["code"] == 404
        assert client.get("/score").status_code == 405


def test_no_page_of_another_origin_may_ask():
    with asked() as client:
        answer = client.get("/models", headers={"Origin": "https://example.org"})
        assert "access-control-allow-origin" not in answer.headers


def test_pages_of_an_origin_that_is_named_may_ask_with_a_key(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n")
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    with asked(desk(keys=Keys(file)), cors=["https://example.org"]) as client:
        for origin, may in (("https://example.org", True), ("https://elsewhere.org", False)):
            before = client.options("/score", headers={"Origin": origin, **asks})
            assert (before.status_code == 200) == may
            found = client.get("/models", headers={"Origin": origin, "Authorization": f"Bearer {KEY}"})
            assert (found.headers.get("access-control-allow-origin") == origin) == may
            assert client.get("/models", headers={"Origin": origin}).status_code == 401


def test_a_server_that_shuts_down_takes_nothing_more():
    one = desk()
    with asked(one) as client:
        client.get("/health")
        one.close(5)
        assert client.post("/score", json={"texts": TEXT}).status_code == 503


# ---- what is told about it


@pytest.mark.parametrize("shows", [False, True])
def test_texts_are_logged_only_where_that_was_asked_for(caplog, shows):
    with asked(desk(shows_texts=shows)) as client, caplog.at_level(logging.INFO, logger="besag.service"):
        client.post("/score", json={"texts": "the cat sat"})
    assert any("POST /score 200" in line for line in caplog.messages)
    assert any("the cat sat" in line for line in caplog.messages) == shows


def test_metrics_are_what_prometheus_reads():
    with asked() as client:
        client.post("/score", json={"texts": [TEXT] * 3})
        client.get("/nowhere")
        text = client.get("/metrics").text
    assert 'besag_requests_total{route="/score",status="200"} 1' in text
    assert 'besag_requests_total{route="other",status="404"} 1' in text
    assert 'besag_request_seconds_count{route="/score"} 1' in text
    assert "besag_queue_tokens 0" in text
    numbers = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}
    assert numbers["besag_tokens_total"] > 0
    assert 0 < numbers["besag_batch_fill"] <= 1


def test_a_histogram_counts_up():
    metrics = Metrics()
    for value in (0.02, 0.3, 100.0):
        metrics.add("/score", 200, value)
    lines = metrics.text({}).splitlines()
    counts = [int(line.split()[-1]) for line in lines if "_bucket" in line]
    assert counts == sorted(counts)
    assert (counts[0], counts[1], counts[-1]) == (0, 1, 3)


# ---- many at once


def test_many_clients_are_told_what_lm_says():
    texts = [f"the {a} sat on a {b}" for a in ("cat", "mat", "man") for b in ("cat", "mat", "man")]
    expected = {text: bert().score(text).total for text in texts}

    async def all_of_them(address: str) -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            return await asyncio.gather(*(client.post("/score", json={"texts": texts[n % 9]}) for n in range(60)))

    with served() as address:
        for number, answer in enumerate(run(all_of_them(address))):
            assert answer.status_code == 200
            assert answer.json()["result"]["total"] == pytest.approx(expected[texts[number % 9]], abs=1e-3)


def test_the_schemas_are_told():
    with asked() as client:
        told = client.get("/openapi.json").json()
    assert json.dumps(told["paths"]["/v1/completions"])
    assert told["components"]["schemas"]["ScoreBody"]["additionalProperties"] is False
