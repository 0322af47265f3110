"""Completions as harnesses ask for them, with the real lm-evaluation-harness where it is installed."""

import json
import os
from pathlib import Path

import pytest
from tests.harnessing import evaluated
from tests.service.serving import asked, bert, desk, served, table

import besag

TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def client():
    with asked() as one:
        yield one


def complete(client, prompt, model="bert", **more):
    usual = {"temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": True}
    answer = client.post("/v1/completions", json={"model": model, "prompt": prompt, **usual, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(client, text, **more):
    return client.post("/tokenize", json={"prompt": text, "add_special_tokens": False, **more}).json()["tokens"]


def test_token_ids_after_a_prefix_token_have_the_score_of_the_text(client):
    info = client.get("/tokenizer_info").json()
    begin = ids(client, info["bos_token"])
    assert len(begin) == 1
    [choice] = complete(client, [begin + ids(client, TEXT)])["choices"]
    numbers, tops = choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"]
    score = bert().score(TEXT, "chain", rank=True)
    assert len(numbers) == len(tops) == 1 + len(score) + 1
    assert numbers[0] is None
    assert numbers[1:-1] == pytest.approx(score.log_probs, abs=1e-4)
    firsts = [number == max(top.values()) for number, top in zip(numbers[1:-1], tops[1:-1], strict=True)]
    assert firsts == [rank == 1 for rank in score.rank]


@pytest.mark.parametrize("prompt", [TEXT, f"[CLS] {TEXT}"])
def test_a_text_has_the_same(client, prompt):
    answer = complete(client, prompt, max_tokens=0)
    [choice] = answer["choices"]
    numbers = choice["logprobs"]["token_logprobs"][prompt.startswith("[CLS]") :]
    assert numbers == pytest.approx(bert().score(TEXT, "chain").log_probs, abs=1e-4)
    assert answer["besag"]["method"] == "chain"
    assert answer["besag"]["meaning"].startswith("a log-probability")


def test_the_name_of_the_model_may_say_the_method(client):
    answer = complete(client, [TEXT, "the cat"], model="bert:pll")
    found = [sum(one["logprobs"]["token_logprobs"][:-1]) for one in answer["choices"]]
    assert found == pytest.approx([one.total for one in bert().score([TEXT, "the cat"])], abs=1e-4)
    assert answer["besag"] == {**answer["besag"], "method": "pll", "meaning": "not a probability"}
    assert [one["index"] for one in answer["choices"]] == [0, 1]


def test_an_exact_law_answers_exactly_and_what_is_impossible_is_a_number(client):
    [choice] = complete(client, "s0 s1 s2 s0", model="table", max_tokens=0)["choices"]
    assert sum(choice["logprobs"]["token_logprobs"]) == table().score("s0 s1 s2 s0", "chain").total
    coins = besag.load(besag.Table([[0.5, 0.0], [0.0, 0.5]], symbols=["h", "t"]), progress=False)
    with asked(desk(models={"coins": lambda: coins})) as other:
        [choice] = complete(other, "h t", model="coins", max_tokens=0)["choices"]
    assert choice["logprobs"]["token_logprobs"][1] == -1e9


def test_prompts_without_a_token_to_score(client):
    begin = ids(client, "[CLS]")
    for prompt in ([begin], ""):
        [choice] = complete(client, prompt)["choices"]
        assert set(choice["logprobs"]["token_logprobs"]) == {None}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"echo": False}, 400, "continues nothing"),
        ({"max_tokens": 5}, 400, "continues nothing"),
        ({"model": "bert:ppl"}, 400, "no scoring method 'ppl'"),
        ({"model": "bert:causal"}, 400, "does not go with"),
        ({"model": "gpt"}, 404, "There are: bert, table"),
        ({"prompt": [[1, 10**6]]}, 400, "is no token id"),
        ({"prompt": "the [MASK] sat"}, 400, "mask"),
        ({"prompt": [1, "two"]}, 422, "prompt"),
    ],
)
def test_what_cannot_be_answered_is_told(client, body, status, words):
    usual = {"model": "bert", "prompt": TEXT, "echo": True, "max_tokens": 1, "logprobs": 1}
    answer = client.post("/v1/completions", json={**usual, **body})
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_tokens_go_there_and_back(client):
    found = client.post("/tokenize", json={"prompt": TEXT}).json()
    assert found["count"] == len(found["tokens"]) == len(ids(client, TEXT)) + 2
    assert client.post("/detokenize", json={"tokens": ids(client, TEXT)}).json() == {"prompt": TEXT}
    assert client.post("/detokenize", json={"tokens": [10**6]}).status_code == 400
    assert client.get("/v1/models").json()["data"][0]["id"] == "bert"


def test_fill_mask_is_hugging_faces(client):
    found = client.post("/fill-mask", json={"inputs": "the [MASK] sat", "parameters": {"top_k": 3}}).json()
    fill = bert().fill("the [MASK] sat", 3, outcomes="all")
    assert [one["token"] for one in found] == [row.tokens[0].id for row in fill.rows]
    assert [one["score"] for one in found] == pytest.approx([row.prob for row in fill.rows], abs=1e-5)
    assert [one["sequence"] for one in found] == [row.text for row in fill.rows]
    several = client.post("/fill-mask", json={"inputs": "the [MASK] sat on [MASK]"}).json()
    assert [len(one) for one in several] == [5, 5]
    assert client.post("/fill-mask", json={"inputs": "the cat"}).status_code == 400


def test_the_real_client_of_hugging_face_reads_fillings(client, monkeypatch):
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)  # this machine is asked, and no other
    with served() as address:
        own = hub.InferenceClient(f"{address}/fill-mask", token="none")
        found = own.fill_mask("the [MASK] sat", top_k=3)
        named = own.fill_mask("the [MASK] sat", targets=["mat", "cat", "mat"])
    rows = bert().fill("the [MASK] sat", 10_000, outcomes="all").rows
    probabilities = {row.tokens[0]: row.prob for row in rows}
    assert [one.token for one in found] == [row.tokens[0].id for row in rows[:3]]
    assert {one.token_str: one.score for one in named} == pytest.approx(
        {word: probabilities[word] for word in ("cat", "mat")}, abs=1e-5
    )
    assert named[0].score >= named[1].score
    refused = client.post("/fill-mask", json={"inputs": "the [MASK] sat", "parameters": {"targets": ["cat sat"]}})
    assert (refused.status_code, "one place holds one" in refused.text) == (400, True)


# ---- the real harness


def decided(folder: Path, address: str, items: list[dict], model: str, **more: object) -> list[list[float]]:
    """What local-completions makes of each choice of each item."""
    pytest.importorskip("tenacity", reason="the harness asks servers with tenacity: pip install 'besag[harness]'")
    arguments = {"model": model, "base_url": f"{address}/v1/completions", "max_retries": 3, **more}
    return evaluated(folder, items, "local-completions", arguments)[0]


@pytest.mark.parametrize("more", [{}, {"num_concurrent": 4}, {"batch_size": 3}, {"tokenized_requests": False}])
def test_the_real_harness_reads_what_score_says(tmp_path, more):
    items = [
        {"context": "", "choices": ["the cat sat", "the sat cat"]},
        {"context": "the cat", "choices": ["sat on the mat", "mat"]},
        {"context": "", "choices": ["a mat", "on on on"]},
    ]
    with served() as address:
        found = decided(tmp_path, address, items, "bert", **more)
    for item, numbers in zip(items, found, strict=True):
        expected = bert().score(item["choices"], "chain", prefix=item["context"])
        wholes = [f"{item['context']} {choice}".strip() for choice in item["choices"]]
        # the harness scores the tokens that follow the context, in a text with no more than these
        assert numbers == pytest.approx(
            [
                one.log_probs[-len(part) :].sum()
                for one, part in zip(bert().score(wholes, "chain"), expected, strict=True)
            ],
            abs=1e-3,
        )


DATA = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[3] / "shared" / "data")) / "blimp"
PARADIGMS = ("anaphor_gender_agreement", "determiner_noun_agreement_1", "regular_plural_subject_verb_agreement_1")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not DATA.exists(), reason="BLiMP is not there: set BESAG_DATA")
def test_pairs_of_blimp_are_decided_as_chain_decides_them(tmp_path):
    lm = besag.load(progress=False)
    items = []
    for paradigm in PARADIGMS:
        [file] = DATA.rglob(f"{paradigm}.jsonl")
        rows = [json.loads(line) for line in file.read_text().splitlines()[:34]]
        items += [{"context": "", "choices": [row["sentence_good"], row["sentence_bad"]]} for row in rows]
    items = items[:100]
    with served(desk(models={"small-en": lambda: lm})) as address:
        found = decided(tmp_path, address, items, "small-en", num_concurrent=8)
    for item, (good, bad) in zip(items, found, strict=True):
        one, other = lm.score(item["choices"], "chain")
        assert (good, bad) == pytest.approx((one.total, other.total), abs=1e-3)
        assert (good > bad) == (one.total > other.total)
