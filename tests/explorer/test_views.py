"""What the views are told is what the verbs say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.service.serving import bert, table

import besag
from besag.admission import Busy
from besag.errors import BesagError
from besag.explorer import views
from besag.joints.registry import CONSTRUCTIONS
from besag.samplers.kernel import kernel

TEXT = "the cat sat on the mat"
PAIR = "the [MASK] sat on the [MASK]"


def test_a_score_is_told_in_bits():
    [told] = views.score(bert(), TEXT, "chain").values()
    assert told == bert().score(TEXT, "chain", base=2).to_dict()


def test_a_method_that_cannot_be_asked_is_no_fault():
    assert "causal" in views.score(bert(), TEXT, "causal")["refused"]


def test_a_full_queue_is_not_a_refusal_of_the_method():
    class Full:
        def score(self, *_, **__):
            raise Busy("full", 3)

    with pytest.raises(Busy):
        views.score(Full(), TEXT, "pll")


def test_places_are_the_marginals():
    lm = bert()
    told, found = views.places(lm, TEXT, 4), lm.marginals(TEXT, base=2, outcomes="text")
    assert [one["log_prob"] for one in told["places"]] == pytest.approx(found.own.tolist())
    for one in told["places"]:
        top = found.top(one["place"], 4)
        assert [guess["token"] for guess in one["likeliest"]] == [str(token) for token, _ in top]
        assert [guess["log_prob"] for guess in one["likeliest"]] == pytest.approx([value for _, value in top])
    second = told["places"][1]
    assert second["likeliest"][0]["text"].startswith("the")
    assert TEXT[second["start"] : second["end"]] == "cat"
    assert json.loads(json.dumps(told)) == told


def test_what_goes_on_the_word_before_is_marked():
    lm = bert()
    pieces = [token for token in lm.tokenizer.get_vocab() if token.startswith("##")]
    shown = [guess["shown"] for one in views.places(lm, TEXT, 50)["places"] for guess in one["likeliest"]
             if guess["token"] in pieces]  # fmt: skip
    assert shown
    assert any(one.startswith("-") for one in shown)


def test_a_pair_is_every_construction_on_the_same_answers():
    lm = bert()
    told = views.pair(lm, PAIR, 5)
    assert [law["method"] for law in told["laws"]] == list(CONSTRUCTIONS)
    for law in told["laws"]:
        joint = lm.joint(PAIR, method=law["method"], candidates=5)
        assert np.allclose(law["matrix"], joint.matrix(), atol=1e-5)
        assert np.allclose(law["marginals"][0], joint.marginals[0], atol=1e-5)
        assert law["mutual_information"] == pytest.approx(joint.mutual_information, abs=1e-5)
        assert [one["text"] for one in law["top"]] == [one.text for one in joint.top(views.TOP)]
    assert [len(side) for side in told["tokens"]] == [5, 5]


@pytest.mark.parametrize("text", ["the [MASK] [MASK] [MASK]", "the [MASK] sat", "the cat"])
def test_a_pair_has_two_sides(text):
    with pytest.raises(BesagError, match=r"mask|place"):
        views.pair(bert(), text, 5)


@pytest.mark.parametrize("name", ["gibbs", "metropolis", "mask_predict"])
def test_writing_tells_every_step_with_its_numbers(name):
    lm, rows = bert(), []
    given = {"text": PAIR, "chains": 2, "steps": 3, "seed": 5}
    result = views.write(lm, kernel(name), rows.append, **given)
    chain = lm.sample(kernel=name, every=1, **given)
    assert result == chain.to_dict()
    assert [tuple(row["texts"]) for row in rows] == list(zip(*chain.kept, strict=True))
    assert rows[0]["numbers"] == {}
    for name_, values in chain.numbers.items():
        assert np.allclose([row["numbers"][name_] for row in rows[1:]], values.T)
    assert json.loads(json.dumps(rows)) == rows


def test_a_kernel_that_tells_is_the_same_kernel():
    told = []
    one = kernel("gibbs", temperature=0.5)
    other = views.telling(one, told.append)
    assert (other.label, other.law, type(other)) == (one.label, one.law, type(one))
    chains = [table().sample(length=4, kernel=k, chains=2, steps=4, seed=1).texts for k in (one, other)]
    assert chains[0] == chains[1]
    assert len(told) == 4


def test_tokens_are_spelled_as_a_reader_sees_them():
    lm = bert()
    assert views.spelled(lm.vocabulary, lm.tokenizer.convert_tokens_to_ids("cat")) == "cat"
    embedded = besag.load(progress=False)
    assert views.spelled(embedded.vocabulary, embedded.tokenizer.convert_tokens_to_ids("▁the")) == "the"
