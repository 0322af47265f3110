import numpy as np
import pytest
from scipy.stats import chisquare
from tests.masks.example_passages import plain, ragged, repeated

from besag.errors import BesagError
from besag.masks import law
from besag.masks.units import uniform_turns


def test_short_runs_are_likelier_as_one_over_n():
    assert law("ngram").lengths() == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    times, size = 4000, 200
    passages = repeated(plain(size), times)
    hidden = law("ngram").choose(passages, np.full(times, 3 / size), 0.0, seed=1).reshape(times, size)
    assert (hidden.sum(1) == 3).all()
    first = uniform_turns(passages, 1).reshape(times, size).argmin(1)
    inside = hidden[np.arange(times)[:, None], np.minimum(first[:, None] + np.arange(3), size - 1)][first < size - 3]
    counts = np.bincount(np.where(inside.all(1), 3, inside.argmin(1)), minlength=4)[1:]
    assert chisquare(counts, law("ngram").lengths() * counts.sum()).pvalue > 1e-3


def test_one_word_at_most_is_whole_word_masking():
    passages, rates = ragged([50] * 30), np.full(30, 0.3)
    expected = law("whole_word").choose(passages, rates, 0.0, seed=1)
    assert (law("ngram", longest=1).choose(passages, rates, 0.0, seed=1) == expected).all()
    assert (law("ngram").choose(passages, rates, 0.0, seed=1) != expected).any()


def test_words_are_hidden_whole():
    passages = repeated(plain(30)._replace(word=np.repeat(np.arange(10), 3)), 200)
    parts = law("ngram").choose(passages, np.full(200, 0.5), 0.0, 0).reshape(200, 10, 3)
    assert (parts.all(2) == parts.any(2)).all()


def test_no_words_at_all_are_refused():
    with pytest.raises(BesagError, match="longest is 0"):
        law("ngram", longest=0)
