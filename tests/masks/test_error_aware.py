import numpy as np
from scipy.stats import chisquare
from tests.masks.example_passages import plain, ragged, repeated

from besag.masks import law

SPAN = np.array([-1, 0, 0, -1, -1, 1, 1, 1, -1, -1, 2, -1, -1, -1, -1, -1])  # six errors, ten right tokens


def test_errors_are_never_hidden_and_the_rate_counts_the_rest():
    passages = repeated(plain(16)._replace(span=SPAN), 4000)
    hidden = law("error_aware").choose(passages, np.full(4000, 0.2), 0.0, seed=1).reshape(-1, 16)
    assert not hidden[:, SPAN >= 0].any()
    assert (hidden.sum(1) == 2).all()  # 20 % of ten
    assert chisquare(hidden[:, SPAN < 0].sum(0)).pvalue > 1e-3


def test_without_errors_it_is_the_uniform_law():
    passages, rates = ragged([40] * 20, inside=0.0), np.full(20, 0.2)
    assert (law("error_aware").choose(passages, rates, 0.0, 1) == law("uniform").choose(passages, rates, 0.0, 1)).all()


def test_a_passage_of_nothing_but_errors_is_left_alone():
    passages = plain(4)._replace(span=np.zeros(4, int))
    assert not law("error_aware").choose(passages, np.ones(1), 0.0, 1).any()
