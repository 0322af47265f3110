"""The real lm-evaluation-harness on a tiny local task, and what it is answered beside `lm.score(prefix=…)`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harnessing import evaluated
from tests.networks import tiny, vocabulary

import besag
from besag.errors import BesagError

pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed: pip install 'besag[harness]'")

from besag import harness

ITEMS = [
    {"context": "the cat", "choices": ["sleeps on the mat", "of"], "label": 0},
    {"context": "a man", "choices": ["the the the", "sleeps"], "label": 1},
    {"context": "", "choices": ["the man sleeps", "man"], "label": 0},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("harness") / "bert"
    tiny("bert").save_pretrained(place)
    vocabulary("bert").tokenizer.save_pretrained(place)
    return place


def instance(*args):
    return SimpleNamespace(args=args)


def test_a_task_of_the_real_harness(folder, tmp_path):
    found, accuracy = evaluated(tmp_path, ITEMS, "besag", f"pretrained={folder},method=chain")
    lm, right = besag.load(folder), 0
    for item, answered in zip(ITEMS, found, strict=True):
        own = [lm.score(choice, "chain", prefix=item["context"]).total for choice in item["choices"]]
        assert answered == pytest.approx(own, abs=1e-4)
        right += own.index(max(own)) == item["label"]
    assert accuracy == pytest.approx(right / len(ITEMS))


@pytest.mark.parametrize("method", ["chain", "pll", "word_l2r"])
def test_each_answer_is_the_score_given_the_prefix(folder, method):
    model, lm = harness.Harnessed(str(folder), method=method), besag.load(folder)
    pairs = [("the cat", " sleeps on the mat"), ("the cat ", "sleeps"), ("the cat", "sleeps"), ("", "the man")]
    found = model.loglikelihood([instance(*pair) for pair in pairs])
    own = [
        lm.score("sleeps on the mat", method, prefix="the cat"),
        lm.score("sleeps", method, prefix="the cat"),
        lm.score("sleeps", method, prefix="the cat", separator=""),
        lm.score("the man", method),
    ]
    assert [total for total, _ in found] == pytest.approx([score.total for score in own], abs=1e-4)
    whole = ["the cat sleeps", "man"]
    assert model.loglikelihood_rolling([instance(text) for text in whole]) == pytest.approx(
        [lm.score(text, method).total for text in whole], abs=1e-4
    )


def test_greedy_is_what_greedy_decoding_would_write(folder):
    """Written by hand: the first choice at each masked place, from the left, given how many are to come."""
    model, lm = harness.Harnessed(str(folder), method="chain"), besag.load(folder)
    text = "the cat sleeps on"
    ranks = lm.score("sleeps on", "chain", prefix="the cat", rank=True).rank.tolist()
    [(_, greedy)] = model.loglikelihood([instance("the cat", " sleeps on")])
    assert greedy == (ranks == [1] * len(ranks))
    row = lm.marginals(text.rsplit(" ", 1)[0] + " on", positions=[len(lm.vocabulary.encode([text])[0].ids) - 2])
    first = lm.vocabulary.token(int(row.log_probs[0].argmax()))
    [(_, greedy)] = model.loglikelihood([instance("the cat sleeps", f" {first.lstrip('#')}")])
    found = lm.score(first.lstrip("#"), "chain", prefix="the cat sleeps", rank=True)
    assert greedy == (found.rank.tolist() == [1] * len(found))
    assert not any(first for _, first in harness.Harnessed(str(folder), method="pll").loglikelihood(
        [instance("the cat", " sleeps on")]
    ))  # fmt: skip


@given(st.text("ab \n", max_size=6), st.text("ab \n", max_size=6))
def test_nothing_is_lost_at_the_seam(context, continuation):
    cut = harness.asked(context, continuation)
    assert cut.prefix + cut.blanks + cut.text == context + continuation
    assert cut.prefix == cut.prefix.rstrip()
    assert cut.text == cut.text.lstrip()


def test_what_it_cannot_do_is_refused(folder):
    model = harness.Harnessed(str(folder))
    with pytest.raises(BesagError, match="multiple choice"):
        model.generate_until([instance("the cat", {"until": ["."]})])
    with pytest.raises(BesagError, match="nothing that could be scored"):
        model.loglikelihood([instance("the cat", "  ")])
    with pytest.raises(BesagError, match="chain"):
        harness.Harnessed(str(folder), method="chian")
