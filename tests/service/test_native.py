"""Each verb over HTTP says what `lm` says, and nothing that is asked can name what only Python may."""

import json

import httpx
import pytest
from tests import networks
from tests.laws import Arbitrary, Counting
from tests.networks import tiny, vocabulary
from tests.service.serving import asked, bert, desk, emptied, served

import besag
from besag.asking import Asking
from besag.conditionals.decoder import CausalDecoder
from besag.joints.candidates import THROUGH
from besag.joints.registry import construction
from besag.samplers import kernel
from besag.scores import method
from besag.service import weighing
from besag.translation.translating import wish

TEXT, TWO = "the cat sat on the mat", "the [MASK] sat on the [MASK]"


@pytest.fixture(scope="module")
def client():
    with asked(desk(queue_tokens=2**24)) as one:  # a map of dependences takes many tokens
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


def test_a_reader_who_leaves_ends_the_chain():
    one, body = desk(), {"text": TWO, "steps": 30_000, "chains": 1, "stream": True}
    with served(one) as address:
        with httpx.stream("POST", f"{address}/sample", json=body) as answer:
            assert next(answer.iter_lines()) == "event: step"
        assert emptied(one)  # of steps that take a minute


LONG_RUN = {"text": "the [MASK] sat", "kernel": "remask", "chains": 1, "options": {"grid": 100_000}}


def test_a_deadline_ends_steps_that_ask_nothing():
    """Most of these steps reveal nothing, and so run nothing."""
    one = desk()
    with asked(one) as client:
        answer = client.post("/sample", json=LONG_RUN, headers={"Besag-Deadline": "0.5"})
        assert answer.status_code == 504, answer.text
        assert emptied(one)


def test_a_client_who_leaves_ends_steps_that_ask_nothing():
    one = desk()
    with served(one) as address:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{address}/sample", json=LONG_RUN, timeout=1)
        assert emptied(one)


def test_memory_that_runs_out_is_told_and_is_no_fault(client, monkeypatch):
    def full(*given, **named):
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried"
        )

    monkeypatch.setattr("besag.language_model.LanguageModel.sample", full)
    answer = client.post("/sample", json={"text": TWO})
    assert answer.status_code == 503
    assert "ask for less" in answer.json()["error"]["message"]


LONG = " ".join(["the cat sat on the mat"] * 9)  # 54 tokens, of which the model sees 40


@pytest.mark.parametrize(
    ("route", "body", "status"),
    [
        ("score", {"texts": LONG}, 200),  # in windows, all of these
        ("v1/completions", {"prompt": LONG, "echo": True, "max_tokens": 0, "logprobs": 0}, 200),
        ("joint", {"text": LONG, "positions": [30, 31], "candidates": 3}, 200),
        ("joint", {"text": LONG, "positions": [1, 50], "candidates": 3}, 413),
        ("dependence", {"text": LONG, "candidates": 2}, 413),
        ("fill", {"text": f"[MASK] {LONG} [MASK]", "candidates": 3}, 413),
        ("sample", {"text": f"[MASK] {LONG}", "steps": 1}, 413),
        ("sample", {"length": 100, "steps": 1}, 413),
        ("fill-mask", {"inputs": f"[MASK] {LONG}"}, 413),
    ],
)
def test_a_text_longer_than_the_model_is_read_in_windows_or_refused(client, route, body, status):
    answer = client.post(f"/{route}", json=body)
    assert answer.status_code == status, answer.text
    if status == 413:
        assert " sees " in answer.json()["error"]["message"]


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


# ---- models that are given a source, and models that see one side


@pytest.fixture(scope="module")
def translators():
    tables = {"Hund": [[0.4, 0.0], [0.1, 0.1]], "Katze": [[0.0, 0.1], [0.1, 0.2]]}
    law = besag.load(besag.GivenTable(tables, symbols=["a", "b"]), progress=False)
    network = besag.load((tiny("gpt2"), vocabulary("gpt2").tokenizer), device="cpu", progress=False, name="gpt2")
    with asked(desk(models={"law": lambda: law, "gpt2": lambda: network})) as client:
        yield client, law, network


@pytest.mark.parametrize("source", ["Hund", "Katze"])
def test_a_source_in_the_body_is_what_the_model_is_given(translators, source):
    client, law, _ = translators
    expected = law.given(source).score("b a", "chain")
    found = client.post("/score", json={"texts": "b a", "method": "chain", "source": source}).json()["result"]
    assert found["total"] == expected.total
    completed = client.post("/v1/completions", json={"prompt": "b a", "source": source, "echo": True, "logprobs": 1,
                                                     "max_tokens": 0}).json()  # fmt: skip
    assert completed["choices"][0]["logprobs"]["token_logprobs"] == expected.log_probs.tolist()
    masked = client.post("/fill-mask", json={"inputs": "[MASK] a", "source": source}).json()
    likeliest = law.given(source).fill("[MASK] a", outcomes="all").rows[0].prob
    assert max(one["score"] for one in masked) == pytest.approx(likeliest, abs=1e-12)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("score", {"texts": "b a"}),
        ("sample", {"text": "[MASK] a"}),
        ("v1/completions", {"prompt": "b a", "echo": True, "max_tokens": 0}),
        ("fill-mask", {"inputs": "[MASK] a"}),
    ],
)
def test_a_model_that_needs_a_source_says_where_to_put_it(translators, route, body):
    client, _, _ = translators
    answer = client.post(f"/{route}", json=body)
    assert answer.status_code == 400
    assert "say `source` in the body" in answer.json()["error"]["message"]
    assert client.get("/health").json()["status"] == "ok"  # it is given one


def test_a_model_without_a_mask_scores_and_refuses_the_rest_in_a_sentence(translators):
    client, _, network = translators
    body = {"model": "gpt2", "texts": TEXT, "method": "causal"}
    expected = network.score(TEXT, "causal").total
    assert client.post("/score", json=body).json()["result"]["total"] == pytest.approx(expected, abs=1e-3)
    completed = client.post("/v1/completions", json={"model": "gpt2", "prompt": TEXT, "echo": True, "max_tokens": 1})
    assert completed.json()["besag"]["method"] == "causal"
    two, one = {"text": TWO}, {"text": TEXT}
    refused = {"fill": two, "joint": two, "sample": two, "dependence": one, "fill-mask": {"inputs": TWO}}
    for route, more in {**refused, "score": {"texts": TEXT}}.items():
        answer = client.post(f"/{route}", json={"model": "gpt2", **more})
        assert answer.status_code == 400, route
        assert "mask" in answer.json()["error"]["message"]


def test_sources_are_translated(translators):
    client, law, _ = translators
    body = {"sources": ["Hund", "Katze"], "kernel": "gibbs", "seed": 3, "options": {"length": 2, "top_k": 2}}
    expected = law.translate(["Hund", "Katze"], "gibbs", seed=3, length=2, top_k=2)
    found = client.post("/translate", json=body).json()["result"]
    assert [one["text"] for one in found["rows"]] == expected.texts
    assert found["how"] == expected.how
    terms = client.post("/translate", json={"sources": "Hund", "terms": [["b"]], "options": {"length": 2}}).json()
    assert "b" in terms["result"]["rows"][0]["text"]


def test_a_left_to_right_translator_waits_its_turn(translators, monkeypatch):
    who = besag.load(CausalDecoder(networks.tiny_decoder("bart"), vocabulary("bert"), "tiny"), progress=False)
    expected, turns = who.translate(["the cat", "dogs sleep"], beam=2), []
    run = Asking.in_turn
    monkeypatch.setattr(Asking, "in_turn", lambda self, batch: turns.append(batch) or run(self, batch))
    with asked(desk(models={"tiny": lambda: who})) as client:
        found = client.post("/translate", json={"sources": ["the cat", "dogs sleep"], "options": {"beam": 2}}).json()
    assert [one["text"] for one in found["result"]["rows"]] == expected.texts
    assert turns


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, "length"),  # a table predicts none
        ({"source": "Hund", "options": {"length": 2}}, "leave `source` out"),
        ({"model": "gpt2", "options": {"length": 2}}, "takes no source"),
        ({"kernel": "nobody"}, "nobody"),
        ({"options": {"judge": "x"}}, "judge"),
        ({"terms": [["a"], ["b"]], "options": {"length": 2}}, "lists of terms"),
    ],
)
def test_what_cannot_be_translated_is_told(translators, more, sentence):
    answer = translators[0].post("/translate", json={"sources": "Hund", **more})
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]["message"]


# ---- what it weighs


def test_a_window_and_a_source_are_weighed():
    sight = weighing.Sight(most=512, source=10, mask="<mask>", width=1000)
    assert weighing.scores([1000], method("pll"), sight) == 1000 * 522
    assert weighing.scores([500], method("unmasked"), sight) == 510
    size = weighing.tokens("<mask> [MASK]") + 10
    assert weighing.joint("<mask> [MASK]", None, 5, construction("ag"), sight) == (1 + 2 * (5 + THROUGH)) * size
    assert weighing.sample("<mask>", None, 2, 3, kernel("gibbs"), sight) == 2 * 3 * (weighing.tokens("<mask>") + 10)


def test_many_small_texts_weigh_what_they_weigh_alone():
    one = weighing.scores([10], method("pll"))
    assert weighing.scores([10] * 7, method("pll")) == 7 * one == 700
    assert weighing.scores([10], method("unmasked")) == 10
    assert weighing.scores([10], method("chain", orders=3, order="random")) == 300
    assert weighing.scores([10], method("ag_chain", candidates=4)) == 500
    assert weighing.scores([10], method("elbo", samples=7)) == 70


def test_what_says_more_of_a_translation_weighs_more():
    def of(**options):
        return weighing.translation(["one two three"], wish(**options))

    usual = of()
    for options in ({"length": 60}, {"lengths": 3}, {"draws": 4}, {"restarts": 2}, {"passes": 50, "length": 60},
                    {"choose": "pll"}, {"kernel": "refine", "iterations": 1000}):  # fmt: skip
        assert of(**options) > usual, options
    sight = weighing.Sight(causal=True)
    assert weighing.translation(["a b c"], wish(beam=50), sight) > 5 * weighing.translation(["a b c"], wish(), sight)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("score", {"texts": "s0 s1 s2 s0 s1", "method": "ag_chain", "options": {"candidates": 2}}),
        ("score", {"texts": "s0 s1 s2 s0 s1", "method": "elbo", "options": {"samples": 20}}),
        ("joint", {"text": "[MASK] [MASK] s0 s1", "candidates": "all"}),
        ("joint", {"text": "[MASK] [MASK] s0 [MASK] [MASK]", "candidates": 3}),
        ("fill", {"text": "[MASK] [MASK] s0 [MASK] [MASK]", "candidates": 2, "beam": 3}),
        ("dependence", {"text": "s0 s1 s2 s0", "candidates": 3}),
        ("choose", {"text": "s0 {} s1 s2", "choices": ["s0", "s2"]}),
        ("choose", {"text": "s0 {} s1 s2", "choices": ["s0", "s2"], "of": "option"}),
        ("fill", {"text": "[MASK] [MASK] s0 [MASK] [MASK]", "k": 100, "candidates": 2, "beam": 1}),
        ("sample", {"text": "[MASK] [MASK] s0 s1", "steps": 6, "kernel": "gibbs"}),
        ("sample", {"length": 7, "chains": 2, "steps": 4, "kernel": "adaptive",
                    "options": {"signal": "information", "candidates": 3}}),
        ("sample", {"length": 7, "chains": 2, "kernel": "adaptive", "options": {"signal": "change", "budget": 0.0}}),
        ("sample", {"length": 7, "chains": 2, "steps": 2, "kernel": "refine", "options": {"hide": True}}),
        ("sample", {"text": "[MASK] s0 s1 s2 s0 s1 s2 s0", "steps": 9, "kernel": "metropolis"}),
        ("sample", {"text": "[MASK] [MASK] s0 s1", "steps": 6, "kernel": "metropolis"}),
        ("sample", {"text": "[MASK] [MASK] s0 s1", "steps": 6, "kernel": "tempering", "options": {"rungs": 3}}),
        ("sample", {"text": "[MASK] [MASK] s0 s1", "steps": 6, "kernel": "block_gibbs",
                    "options": {"inner": "ag", "candidates": 3}}),
    ],
)  # fmt: skip
def test_what_is_asked_weighs_no_less_than_what_is_run(route, body):
    law = Counting(Arbitrary())
    lm, weights = besag.load(law, progress=False), []
    one = desk(models={"law": lambda: lm})
    with asked(one) as client:
        client.get("/health")
        [scheduler] = one.shelf.schedulers.values()
        admit = scheduler.admit
        law.batches.clear()
        scheduler.admit = lambda tokens, seconds: weights.append(tokens) or admit(tokens, seconds)
        assert client.post(f"/{route}", json=body).status_code == 200
    assert 0 < sum(map(len, law.sequences)) <= weights[0]


def test_a_choice_is_weighed_and_checked_by_the_method_that_is_run(client, monkeypatch):
    seen = []
    weigh = weighing.scores
    monkeypatch.setattr(weighing, "scores", lambda *given: seen.append(given[1].name) or weigh(*given))
    body = {"text": "the [MASK] sat", "choices": ["cat", "mat"]}
    for of, usual in (("sentence", "word_l2r"), ("option", "chain")):
        found = client.post("/choose", json={**body, "of": of}).json()["result"]
        assert found["method"] == usual == seen.pop()
    answer = client.post("/choose", json={**body, "options": {"orders": 2}})  # an option of `chain` alone
    assert answer.status_code == 400
    assert "'word_l2r'" in answer.json()["error"]["message"]
    assert "orders" in answer.json()["error"]["message"]


@pytest.mark.parametrize("count", [1, 8])
def test_one_text_or_many_are_refused_alike(count):
    with asked(desk(queue_tokens=50)) as client:
        answer = client.post("/score", json={"texts": [TEXT] * count})
        assert answer.status_code == 413
        assert "ask for less at a time" in answer.json()["error"]["message"]
