"""The page and its files, what they may do, and the command that opens them."""

from __future__ import annotations

import json
import re

import pytest
from tests.service.serving import asked, bert, desk
from typer.testing import CliRunner

from besag.cli import app
from besag.explorer.routes import FILES
from besag.service.keys import Keys

PAIR = "the [MASK] sat on the [MASK]"


@pytest.fixture(scope="module")
def client():
    with asked() as one:
        yield one


def test_the_page_is_at_the_root_and_everything_it_names_is_there(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    named = re.findall(r'(?:src|href)="(explorer/[^"]+)"', page.text)
    assert len(named) > 5
    for file in FILES.glob("*.js"):
        text = client.get(f"/explorer/{file.name}")
        assert text.headers["content-type"].startswith("text/javascript")
        named += [f"explorer/{one}" for one in re.findall(r'from "\./([^"]+)"', text.text)]
    for name in named:
        assert client.get(f"/{name}").status_code == 200, name


@pytest.mark.parametrize("name", ["", "none.js", "..%2froutes.py", "../routes.py", "%2e%2e/routes.py", "routes.py"])
def test_no_other_file_is_given(client, name):
    assert client.get(f"/explorer/{name}").status_code in (404, 405)


def test_browsers_hold_the_page_to_its_own_host(client):
    for path in ("/", "/explorer/main.js", "/explorer/style.css"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "connect-src 'self'" in policy
        assert "unsafe" not in policy


def test_no_file_names_another_host_or_writes_markup():
    for file in FILES.iterdir():
        text = file.read_text(encoding="utf-8")
        hosts = set(re.findall(r"(?:https?:)?//([\w.-]+\.\w+)", text))
        assert hosts <= {"www.w3.org"}, file.name  # the name of SVG, which nobody asks
        if file.suffix == ".js":
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text), file.name


def test_the_page_asks_for_a_key_as_every_route_does(tmp_path):
    file = tmp_path / "keys"
    file.write_text("a key of the lab, long enough\n")
    with asked(desk(keys=Keys(file))) as client:
        assert {client.get(path).status_code for path in ("/", "/explorer/main.js")} == {401}


def test_answers_are_those_of_the_views(client):
    score = client.post("/explorer/score", json={"text": "the cat", "method": "pll"}).json()
    assert score["result"]["total"] == pytest.approx(bert().score("the cat", base=2).total, abs=1e-4)
    assert "refused" in client.post("/explorer/score", json={"text": "the cat", "method": "causal"}).json()
    assert len(client.post("/explorer/places", json={"text": "the cat", "k": 3}).json()["result"]["places"]) == 2
    assert client.post("/explorer/pair", json={"text": PAIR, "candidates": 3}).json()["result"]["laws"]


def test_what_makes_no_sense_is_refused(client):
    assert client.post("/explorer/pair", json={"text": "the cat"}).status_code == 400
    assert client.post("/explorer/pair", json={"text": PAIR, "candidates": 10**6}).status_code == 422
    assert client.post("/explorer/write", json={"text": PAIR, "kernel": "none"}).status_code == 400
    assert client.post("/explorer/write", json={"text": PAIR, "options": {"record": "x"}}).status_code == 400
    assert client.post("/explorer/score", json={"text": "x", "method": "nothing"}).status_code == 400


def test_chains_come_as_events(client):
    body = {"text": PAIR, "kernel": "metropolis", "steps": 100, "seed": 2}
    with client.stream("POST", "/explorer/write", json=body) as answer:
        events = "".join(answer.iter_text()).split("\n\n")
    kinds = [event.split("\n")[0] for event in events if event]
    assert kinds == ["event: step"] * 101 + ["event: result"]  # none is left out
    last = json.loads(events[100].split("data: ", 1)[1])
    assert last["step"] == 100
    assert {"energy", "accepted", "passes", "changed"} <= last["numbers"].keys()


@pytest.mark.parametrize(("arguments", "opened"), [([], 1), (["--no-browser"], 0)])
def test_the_command_serves_this_machine_and_opens_a_browser(monkeypatch, arguments, opened):
    import webbrowser

    from besag.service import run

    served, shown = [], []

    def serve(desk, socket, **_):
        served.append((run.address(socket), desk.shelf.names))
        for thread in __import__("threading").enumerate():
            if thread.name.startswith("Thread-") and "_open" in thread.name:
                thread.join(5)

    monkeypatch.setattr(run, "serve", serve)
    monkeypatch.setattr(webbrowser, "open", lambda address: shown.append(address) or True)
    result = CliRunner().invoke(app, ["explore", *arguments])
    assert result.exit_code == 0, result.output
    [(address, names)] = served
    assert address.startswith("http://127.0.0.1:")
    assert names == ["small-en"]
    assert address in result.stderr
    assert shown == [address] * opened
