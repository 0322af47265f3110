"""`besag.connect`: the same verbs, the same objects, over the wire."""

import json
import math
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import vocabulary
from tests.service.serving import bert, desk, served, table

import besag
from besag.admission import Busy
from besag.errors import BesagError
from besag.places.tokens import Token
from besag.results.status import Status
from besag.service import wire
from besag.service.keys import Keys
from besag.service.run import address as address_of
from besag.service.run import listening
from besag.service.tokenizers import read_vocabulary, written

TEXT, TWO = "the cat sat on the mat", "the [MASK] sat on the [MASK]"


@pytest.fixture(scope="module")
def address():
    with served() as one:
        yield one


VERBS = {
    "score": lambda lm: lm.score(TEXT, "chain", rank=True, entropy=True, order="random", seed=2),
    "scores": lambda lm: lm.score([TEXT, "", "the cat"], base=2)[0],
    "choose": lambda lm: lm.choose("the [MASK] sat", ["cat", "mat"], of="option"),
    "joint": lambda lm: lm.joint(TWO, method="order", candidates=6),
    "block": lambda lm: lm.joint("[MASK] [MASK] sat on [MASK]", candidates=3, limit=5),
    "fill": lambda lm: lm.fill(TWO, 3, "order", candidates=5),
    "dependence": lambda lm: lm.dependence("the cat sat", candidates=3, method="order"),
    "sample": lambda lm: lm.sample(TWO, "ordered", chains=2, seed=1),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_gives_the_object_that_lm_gives(address, verb):
    found, expected = VERBS[verb](besag.connect(address)), VERBS[verb](bert())
    assert type(found) is type(expected)
    assert found.status == expected.status
    if verb == "joint":
        assert [one.tokens for one in found.top(3)] == [one.tokens for one in expected.top(3)]
        assert found.matrix() == pytest.approx(expected.matrix(), abs=1e-3)
        best = [str(token) for token in expected.top(1)[0].tokens]  # tokens by name: the vocabulary is there
        assert found.log_prob(*best) == pytest.approx(expected.log_prob(*best), abs=1e-3)
    else:
        assert len(repr(found)) == pytest.approx(len(repr(expected)), abs=5)


def test_translations_come_over_the_wire():
    law = besag.load(besag.GivenTable({"Hund": [[0.4, 0.0], [0.1, 0.5]]}, symbols=["a", "b"]), progress=False)
    with served(desk(models={"law": lambda: law})) as address:
        found = besag.connect(address).translate(["Hund", ""], "ordered", length=2, trace=True, terms=[["a"], []])
    expected = law.translate(["Hund", ""], "ordered", length=2, trace=True, terms=[["a"], []])
    assert found.rows == expected.rows
    assert type(found) is type(expected)


def test_an_exact_law_is_the_same_to_the_bit(address):
    remote, text = besag.connect(address, "table"), "s0 s1 s2 s0"
    assert repr(remote.score(text)) == repr(table().score(text))
    two = "s0 [MASK] [MASK] s1"
    assert np.array_equal(remote.joint(two).matrix(), table().joint(two).matrix())
    assert remote.sample(two, steps=5).texts == table().sample(two, steps=5).texts


def test_steps_are_watched(address):
    steps = []
    found = besag.connect(address).sample(TWO, steps=3, seed=4, watch=lambda step, *_: steps.append(step))
    assert steps == [0, 1, 2, 3]
    assert found.texts == bert().sample(TWO, steps=3, seed=4).texts


def test_many_texts_go_in_several_requests(address, monkeypatch):
    monkeypatch.setattr("besag.service.client.TOGETHER", 2)
    texts = ["the cat", "the mat", "a man", "the cat sat", "on"]
    assert [one.text for one in besag.connect(address).score(texts)] == texts
    assert besag.connect(address).score([]) == []


def test_what_the_server_refuses_is_told_as_an_error(address):
    remote = besag.connect(address)
    with pytest.raises(BesagError, match=r"refused \(400\): there is no scoring method 'ppl'"):
        remote.score(TEXT, "ppl")
    with pytest.raises(BesagError, match="no model 'gpt' is served"):
        besag.connect(address, "gpt")
    with pytest.raises(BesagError, match="is no address of a server"):
        besag.connect("127.0.0.1:8000")
    assert repr(remote) == f"RemoteModel({address!r}, 'bert')"


def test_a_key_is_sent(tmp_path):
    file = tmp_path / "keys"
    file.write_text("sixteen letters or more\n")
    with served(desk(keys=Keys(file))) as address:
        with pytest.raises(BesagError, match=r"refused \(401\)"):
            besag.connect(address)
        assert besag.connect(address, key="sixteen letters or more").score(TEXT).status == "ok"


def test_a_full_queue_is_waited_for(monkeypatch):
    one = desk()
    told = iter([True, False])
    with served(one) as address:
        remote = besag.connect(address)
        remote.score(TEXT)
        scheduler = next(iter(one.shelf.schedulers.values()))
        admit = scheduler.admit

        def sometimes(tokens, seconds=None):
            if next(told, False):
                raise Busy("full", 1)
            return admit(tokens, seconds)

        monkeypatch.setattr(scheduler, "admit", sometimes)
        assert remote.score(TEXT).status == "ok"
        told = iter([True, False])  # a stream that is refused at first, too
        assert len(remote.sample(TWO, steps=1, watch=lambda *_: None)) == 4


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "is no server of besag"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "is no server of besag"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "is no server of besag"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "broke off in its answer"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", r"refused \(404\): Not Found"),
        (b"nonsense\r\n\r\n", "broke off in its answer"),
        (b"", "nobody answers"),
    ],
)
def test_whoever_else_answers_is_told_apart(said, words):
    def answer():
        with one.accept()[0] as line:
            line.recv(2**16)
            line.sendall(said)

    with listening("127.0.0.1", 0) as one:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(BesagError, match=words):
            besag.connect(address_of(one), timeout=10)
        thread.join()


def test_nobody_there_is_told():
    with pytest.raises(BesagError, match=r"nobody answers at 'http://127\.0\.0\.1:1'"):
        besag.connect("http://127.0.0.1:1", timeout=10)


# ---- the wire

numbers = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False))
values = st.recursive(
    numbers, lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner))
)


@given(values)
def test_what_is_packed_is_unpacked(value):
    assert wire.unpack(json.loads(json.dumps(wire.pack(value)))) == value


def test_arrays_tensors_tokens_and_statuses():
    token = Token("▁cat")
    token.id = 7
    packed = wire.pack([np.arange(6.0).reshape(2, 3), torch.tensor([1.5, -math.inf]), token, Status.EMPTY, math.nan])
    array, tensor, word, status, number = wire.unpack(packed)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.equal(tensor, torch.tensor([1.5, -math.inf]))
    assert (word, word.id, status) == ("▁cat", 7, Status.EMPTY)
    assert math.isnan(number)


def test_nothing_else_is_made_of_what_arrives(monkeypatch):
    with pytest.raises(BesagError, match="is no part of a result"):
        wire.unpack({"$": "os.system", "fields": {"command": "true"}})
    with pytest.raises(BesagError, match="cannot be sent"):
        wire.pack(object())
    monkeypatch.setattr(wire, "MOST_BYTES", 8)
    with pytest.raises(BesagError, match="say candidates="):
        wire.pack(np.zeros(2))


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_a_vocabulary_goes_over_the_wire(family):
    own = vocabulary(family)
    read = read_vocabulary(written(own))
    assert read.mask_id == own.mask_id
    assert read.special_ids == own.special_ids
    assert read.encode(["the cat sat"])[0].ids.tolist() == own.encode(["the cat sat"])[0].ids.tolist()


def test_a_tokenizer_that_is_code_is_not_sent():
    with pytest.raises(BesagError, match="Python code"):
        written(vocabulary("esm"))
