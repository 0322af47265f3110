"""The sentences of a grammar and their probabilities, against derivations by hand."""

import numpy as np
import pytest

from besag import lab
from besag.errors import BesagError


def test_the_small_grammar_has_the_sentences_it_should():
    small = lab.grammar()
    chances = dict(small.sentences())
    assert small.law.sum() == pytest.approx(1)
    assert small.kept == pytest.approx(1 - 0.4 * 0.3)  # a distractor and an object make six words
    assert chances["the dog barks"] == pytest.approx(0.5 * 0.6 * 0.7 / 0.88)
    assert chances["the dogs near dog bark"] == pytest.approx(0.5 * 0.4 * 0.5 * 0.7 / 0.88)
    assert "the dogs near dog barks" not in chances
    assert len(chances) == 10


def test_derivations_of_one_sentence_add_up():
    doubled = lab.grammar({"S": {"A": 0.25, "x": 0.5, "x S": 0.25}, "A": {"x": 1.0}}, places=3)
    # P(x) = 0.75; P(x x) = 0.25 · 0.75; P(x x x) = 0.25² · 0.75
    kept = 0.75 * (1 + 0.25 + 0.0625)
    assert doubled.kept == pytest.approx(kept)
    assert [chance for _, chance in doubled.sentences()] == pytest.approx(np.array([0.75, 0.1875, 0.046875]) / kept)
    assert doubled.words == ["x", "."]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"S": {"a": 0.5}}, "sum to 0.5 and not to 1"),
        ({"T": {"a": 1.0}}, "start='S'"),
        ({"S": {"": 1.0}}, "right side"),
        ({"S": {"S": 0.5, "a": 0.5}}, "no end"),
        ({"S": {"a a a a": 1.0}}, "no sentence"),
        ({"S": {"a .": 1.0}}, "otherwise"),
        ({"S": {" ".join("ab"): 0.5, " ".join(chr(97 + n) for n in range(3)): 0.25, "x y": 0.25}}, None),
        ({"S": {f"w{n} v{n}": 1 / 64 for n in range(64)}}, "places of 129 symbols"),
    ],
)
def test_what_is_no_grammar_is_refused(rules, said):
    if said is None:
        assert lab.grammar(rules, places=3).law.sum() == pytest.approx(1)
        return
    with pytest.raises(BesagError, match=said):
        lab.grammar(rules, places=3)
