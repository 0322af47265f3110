"""The server as a process: how it begins, how it ends, and what is said where it cannot begin."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.networks import tiny, vocabulary
from tests.service.serving import asked  # noqa: F401 - skips where the server is not installed
from typer.testing import CliRunner

import besag
from besag.cli import app
from besag.errors import BesagError
from besag.service.run import listening, tidy

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("served") / "bert"
    tiny("bert").save_pretrained(place)
    vocabulary("bert").tokenizer.save_pretrained(place)
    return place


@contextmanager
def started(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server, and where it says that it listens."""
    path = os.pathsep.join([str(Path(besag.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "besag", "serve", "--port", "0", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, text=True, env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr
        try:
            said = next(line for line in process.stderr if line.startswith("serving"))
            yield process, said.split()[-1]
        finally:
            process.kill()


def ask(address: str, route: str, body: object = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + route, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def status_for(address: str, host: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{address}/models", headers={"Host": host})) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


def test_sigterm_under_load_answers_what_was_accepted(folder):
    answers: list[dict] = []
    names = "--host-name", "gpu.lab", "--host-name", "other.lab"
    with started("--model", f"tiny={folder}", "--device", "cpu", *names) as (process, address):
        assert ask(address, "/v1/models")["data"][0]["id"] == "tiny"
        hosts = ("gpu.lab", "other.lab:8000", "localhost:1", "evil.example")
        assert [status_for(address, host) for host in hosts] == [200, 200, 200, 421]
        assert ask(address, "/health")["status"] == "ok"
        body = {"text": "the [MASK] sat on the [MASK]", "steps": 100, "chains": 2}
        threads = [threading.Thread(target=lambda: answers.append(ask(address, "/sample", body))) for _ in range(4)]
        for thread in threads:
            thread.start()
        while "besag_queue_tokens 0" in urllib.request.urlopen(f"{address}/metrics").read().decode():
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(60)
        assert [len(answer["result"]["chains"]) for answer in answers] == [2] * 4
        assert process.wait(30) == 143


@pytest.mark.parametrize("command", ["serve", "explore"])
def test_a_port_that_is_taken_is_told_before_a_model_is_loaded(monkeypatch, command):
    loaded: list[object] = []
    monkeypatch.setattr(besag, "load", lambda *args, **options: loaded.append(args))
    with listening("127.0.0.1", 0) as other:
        port = str(other.getsockname()[1])
        result = CliRunner().invoke(app, [command, "--port", port])
    assert (result.exit_code, loaded) == (2, [])
    assert f"--port {port} of 127.0.0.1 cannot be had (Address already in use): give another" in result.stderr


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1"])  # the last is nobody's
def test_an_address_that_is_none_is_said(host):
    with pytest.raises(BesagError, match="is no address of this machine"):
        listening(host, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--keys", "nowhere"], "the keys in 'nowhere' cannot be read"),
        (["--model", "a=x", "--model", "a=y"], "two models cannot have one name"),
        (["--model", "x/a", "--model", "y/a"], "two models have one name"),
        (["--model", "./nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_served_is_told_before_it_begins(arguments, words):
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert result.exit_code == 2
    assert words in result.stderr


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = CliRunner().invoke(app, ["serve"])
    assert result.exit_code == 2
    assert "pip install 'besag[serve]'" in result.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_what_was_freed_is_given_back():
    held = [bytearray(4000) for _ in range(50_000)]  # 200 MB in pieces that the allocator keeps
    kept = held[::50]
    del held
    ended = threading.Event()
    before = resident()
    thread = threading.Thread(target=tidy, args=(ended, 0.05))
    thread.start()
    end = time.monotonic() + 10
    while resident() > before - 100e6 and time.monotonic() < end:
        time.sleep(0.05)
    ended.set()
    thread.join(5)
    assert not thread.is_alive()
    assert resident() < before - 100e6
    assert len(kept) == 1000


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(("own", "kept"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_wait_without_spinning_and_torch_hears_of_it(own, kept):
    line = "import os, sys; from besag.cli.serve import wait_without_spinning as wait; wait(); "
    line += "print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | own
    told = subprocess.run([sys.executable, "-c", line], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.split() == [kept, "False"]
