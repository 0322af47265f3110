"""Each verb over HTTP says what `lm` says, and nothing that is asked can name what only Python may."""

import json

import pytest
from tests.service.serving import asked, bert, desk

from besag.service import weighing

TEXT, TWO = "the cat sat on the mat", "the [MASK] sat on the [MASK]"


@pytest.fixture(scope="module")
def client():
    with asked() as one:
        yield one


def same(found, expected):
    """Equal JSON, numbers to rounding; facts repeat the numbers in words."""
    if isinstance(expected, dict):
        keys = expected.keys() - {"facts"}
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in keys)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found == pytest.approx(expected, rel=1e-4, abs=1e-4) if isinstance(expected, float) else found == expected


CASES = {
    "score": ({"texts": [TEXT, "the cat"]}, lambda lm: lm.score([TEXT, "the cat"])),
    "score chain": (
        {"texts": TEXT, "method": "chain", "base": "2", "rank": True, "options": {"order": "random", "seed": 3}},
        lambda lm: lm.score(TEXT, "chain", base=2, rank=True, order="random", seed=3),
    ),
    "choose": (
        {"text": "the [MASK] sat", "choices": ["cat", "mat"]},
        lambda lm: lm.choose("the [MASK] sat", ["cat", "mat"]),
    ),
    "joint": (
        {"text": TWO, "candidates": 5, "method": "order"},
        lambda lm: lm.joint(TWO, method="order", candidates=5),
    ),
    "joint places": (
        {"text": TEXT, "positions": ["cat", [19, 22]], "candidates": 5, "method": "mlm"},
        lambda lm: lm.joint(TEXT, ["cat", (19, 22)], "mlm", candidates=5),
    ),
    "fill": ({"text": "the [MASK] sat", "k": 3}, lambda lm: lm.fill("the [MASK] sat", 3)),
    "dependence": (
        {"text": "the cat sat", "candidates": 3, "method": "order"},
        lambda lm: lm.dependence("the cat sat", candidates=3, method="order"),
    ),
    "sample": (
        {"text": TWO, "kernel": "ordered", "chains": 2, "seed": 5, "options": {"temperature": 0.8}},
        lambda lm: lm.sample(TWO, "ordered", chains=2, seed=5, temperature=0.8),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_route_answers_as_the_verb_does(client, case):
    body, verb = CASES[case]
    answer = client.post(f"/{case.split()[0]}", json={"model": "bert", **body})
    assert answer.status_code == 200, answer.text
    expected, found = verb(bert()), answer.json()
    if isinstance(expected, list):
        expected, found = [one.to_dict() for one in expected], found["results"]
    else:
        expected, found = expected.to_dict(), found["result"]
    assert same(found, json.loads(json.dumps(expected)))


def test_a_text_that_cannot_be_scored_says_so_and_the_others_are(client):
    results = client.post("/score", json={"texts": [TEXT, "", "[MASK]"]}).json()["results"]
    assert [one["status"] for one in results] == ["ok", "empty", "mask"]


def events(text):
    found = [part.split("\n") for part in text.strip().split("\n\n")]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in found]


def test_a_chain_tells_its_steps_while_it_runs(client):
    body = {"text": TWO, "steps": 4, "chains": 2, "seed": 1}
    told = events(client.post("/sample", json={**body, "stream": True}).text)
    assert [kind for kind, _ in told] == ["step"] * 5 + ["result"]
    assert [data["step"] for _, data in told[:-1]] == [0, 1, 2, 3, 4]
    assert told[-1][1] == client.post("/sample", json=body).json()


def test_a_chain_that_is_refused_is_refused_before_the_first_event(client):
    answer = client.post("/sample", json={"model": "none", "text": TWO, "stream": True})
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "UnknownModel")


def test_a_chain_that_fails_says_why_in_an_event(client):
    told = events(client.post("/sample", json={"text": "the cat", "stream": True}).text)
    assert told[-1][0] == "error"
    assert "[MASK]" in told[-1][1]["message"] or "mask" in told[-1][1]["message"]


@pytest.mark.parametrize(
    ("route", "body", "words"),
    [
        ("sample", {"text": TWO, "options": {"record": "/tmp/x"}}, "no option 'record'"),
        ("sample", {"text": TWO, "options": {"watch": "x"}}, "no option 'watch'"),
        ("score", {"texts": TEXT, "options": {"strict": True}}, "no option 'strict'"),
        ("score", {"texts": TEXT, "method": "ppl"}, "Did you mean 'pll'?"),
        ("joint", {"text": "the cat", "positions": ["dog", "cat"]}, "dog"),
        ("fill", {"text": "the cat"}, "mask"),
        ("score", {"texts": TEXT, "source": "x"}, "takes no source"),
        ("score", {"texts": TEXT, "model": "bert:chain"}, "here `method` says it"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_sentence(client, route, body, words):
    answer = client.post(f"/{route}", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_methods_and_models_are_listed(client):
    told = client.get("/methods").json()
    assert {"pll", "chain"} <= {one["name"] for one in told["scores"]}
    assert "temperature" in next(one for one in told["kernels"] if one["name"] == "gibbs")["options"]
    client.post("/score", json={"texts": TEXT})
    models = client.get("/models").json()["models"]
    assert [(one["name"], one["loaded"]) for one in models] == [("bert", True), ("table", False)]


# ---- what it weighs


def test_many_small_texts_weigh_what_they_weigh_alone():
    one = weighing.scores([10], "pll", {})
    assert weighing.scores([10] * 7, "pll", {}) == 7 * one == 700
    assert weighing.scores([10], "unmasked", {}) == 10
    assert weighing.scores([10], "chain", {"orders": 3}) == 300


@pytest.mark.parametrize("count", [1, 8])
def test_one_text_or_many_are_refused_alike(count):
    with asked(desk(queue_tokens=50)) as client:
        answer = client.post("/score", json={"texts": [TEXT] * count})
        assert answer.status_code == 413
        assert "ask for less at a time" in answer.json()["error"]["message"]
