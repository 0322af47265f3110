import numpy as np
from scipy.stats import chisquare
from tests.masks.example_passages import plain, repeated

from besag.masks import law

SPAN = np.array([-1, 0, 0, -1, -1, 1, 1, 1, -1, -1, 2, -1])
PASSAGES = repeated(plain(12)._replace(span=SPAN), 3000)


def choose(rate):
    return law("lem").choose(PASSAGES, np.full(3000, rate), 0.0, seed=1).reshape(-1, 12)


def test_one_token_of_each_span_and_nothing_else():
    hidden = choose(0.5)  # six tokens, and three spans: the rest of the budget is not spent
    assert not hidden[:, SPAN < 0].any()
    for number in range(3):
        assert (hidden[:, number == SPAN].sum(1) == 1).all()  # never the whole of a name
    for number in range(2):
        assert chisquare(hidden[:, number == SPAN].sum(0)).pvalue > 1e-3  # any of its tokens


def test_spans_have_the_same_chance_however_long_they_are():
    hidden = choose(1 / 12)
    assert (hidden.sum(1) == 1).all()
    assert chisquare([hidden[:, number == SPAN].sum() for number in range(3)]).pvalue > 1e-3


def test_without_spans_nothing_is_hidden():
    passages = plain(12)._replace(span=np.full(12, -1))
    assert not law("linguistic_entities").choose(passages, np.full(1, 0.5), 0.0, seed=0).any()
