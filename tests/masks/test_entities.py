import numpy as np
import pytest
from scipy.stats import chisquare
from tests.masks.example_passages import plain, ragged, repeated

from besag.errors import BesagError
from besag.masks import law
from besag.masks.units import budget

SPAN = np.array([-1, 0, 0, -1, -1, 1, 1, 1, -1, -1, 2, -1])
PASSAGES = repeated(plain(12)._replace(span=SPAN), 3000)


def choose(rate, rest="uniform"):
    return law("entities", rest=rest).choose(PASSAGES, np.full(3000, rate), 0.0, seed=1).reshape(-1, 12)


def test_spans_come_first_and_stay_whole():
    hidden = choose(0.25)  # three tokens: two spans, or one of them and something else
    for number in range(3):
        of_span = hidden[:, number == SPAN]
        assert (of_span.all(1) == of_span.any(1)).all()
    # six orders of spans of 2, 3 and 1 tokens: the second fits only if it comes first, and then fills the budget
    assert chisquare([hidden[:, 5].sum(), (~hidden[:, 5]).sum()], [1000, 2000]).pvalue > 1e-3
    assert (hidden[:, 1] & hidden[:, 10] | hidden[:, 5]).all()
    assert (hidden.sum(1) == 3).all()


def test_the_rest_of_the_budget_goes_to_what_is_in_no_span():
    hidden = choose(2 / 3)  # eight tokens: all six of spans and two more
    assert hidden[:, SPAN >= 0].all()
    assert (hidden.sum(1) == 8).all()
    assert chisquare(hidden[:, SPAN < 0].sum(0)).pvalue > 1e-3
    hidden = choose(2 / 3, rest="none")
    assert (hidden == (SPAN >= 0)).all()


def test_a_span_that_does_not_fit_is_left_whole():
    hidden = choose(2 / 12)  # two tokens: never the span of three, not even a part of it
    assert not hidden[:, 5:8].any()
    assert (hidden.sum(1) == 2).all()
    assert (choose(2 / 12, rest="none").sum(1) <= 2).all()


def test_the_rest_may_be_whole_words():
    passages = ragged([60] * 50, joined=0.6, inside=0.05)
    passages = passages._replace(word=np.where(passages.span >= 0, -1, passages.word))  # each span whole by itself
    rates = np.full(50, 0.5)
    hidden = law("entities", rest="whole_word").choose(passages, rates, 0.0, seed=2)
    key = passages.row * 1000 + passages.word
    inside = passages.word >= 0
    assert (hidden & inside).any()
    shares = np.bincount(key[inside], hidden[inside]) / np.maximum(np.bincount(key[inside]), 1)
    assert set(shares.tolist()) == {0.0, 1.0}
    assert (np.bincount(passages.row[hidden], minlength=50) <= budget(passages, rates, 2)).all()


def test_without_spans_it_is_the_uniform_law():
    passages, rates = ragged([40] * 20, inside=0.0), np.full(20, 0.3)
    assert (passages.span < 0).all()
    assert (law("entities").choose(passages, rates, 0.0, 1) == law("uniform").choose(passages, rates, 0.0, 1)).all()


def test_another_rest_is_refused():
    with pytest.raises(BesagError, match="Did you mean 'whole_word'"):
        law("entities", rest="whole_words")
