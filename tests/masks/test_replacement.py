import numpy as np
import pytest
from scipy.stats import chisquare
from tests.masks.example_passages import plain, ragged, repeated

from besag.errors import BesagError
from besag.masks import Replacement, ordinary_ids

MASK = 2


def shown_as(passages, hidden, **shares):
    return Replacement(MASK, **shares)(passages, hidden, 0)


def test_the_mask_alone_is_the_default():
    passages = ragged([30, 20])
    hidden = passages.free & (np.arange(50) % 3 == 0)
    inputs = shown_as(passages, hidden)
    assert (inputs[hidden] == MASK).all()
    assert (inputs[~hidden] == passages.ids[~hidden]).all()


def test_shares_are_as_stated_and_random_tokens_uniform():
    passages = repeated(plain(20), 1000)  # every token is 3
    hidden = passages.place % 2 == 0
    inputs = shown_as(passages, hidden, mask=0.8, random=0.1, keep=0.1, ordinary=np.arange(10, 15))
    assert (inputs[~hidden] == 3).all()
    counts = np.array([(inputs[hidden] == id).sum() for id in (MASK, 3, 10, 11, 12, 13, 14)])
    assert counts.sum() == hidden.sum() == 10_000
    assert chisquare(counts, 10_000 * np.array([0.8, 0.1, *[0.02] * 5])).pvalue > 1e-3


def test_how_a_token_is_shown_does_not_depend_on_what_else_is_hidden():
    passages = repeated(plain(20), 50)
    shares = {"mask": 0.4, "random": 0.3, "keep": 0.3, "ordinary": np.arange(10, 60)}
    all_hidden = shown_as(passages, passages.free, **shares)
    some = passages.place < 7
    assert (shown_as(passages, some, **shares)[some] == all_hidden[some]).all()


@pytest.mark.parametrize("per", ["word", "run"])
def test_words_and_runs_are_shown_in_one_way(per):
    passages = ragged([60] * 100, joined=0.5)
    hidden = passages.free & ~np.isin(passages.word % 4, [0])  # runs of three words
    hidden |= passages.free & (passages.word == 0)
    inputs = shown_as(passages, hidden, mask=0.4, keep=0.6, per=per)
    masked = inputs == MASK
    row, word, at = passages.row[hidden], passages.word[hidden], np.flatnonzero(hidden)
    same = (row[1:] == row[:-1]) & ((word[1:] == word[:-1]) if per == "word" else np.diff(at) == 1)
    kinds = masked[hidden]
    assert (kinds[1:] == kinds[:-1])[same].all()
    assert (kinds[1:] != kinds[:-1])[~same].any()
    groups = np.append(True, ~same)
    assert abs(kinds[groups].mean() - 0.4) < 4 * np.sqrt(0.24 / groups.sum())


def test_ordinary_ids_are_all_but_special_ones():
    assert ordinary_ids(6, {0, 4}).tolist() == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"mask": 0.8, "random": 0.1}, "sum to 1, not mask 0.8, random 0.1, keep 0.0"),
        ({"mask": 1.2, "keep": -0.2}, "sum to 1"),
        ({"mask": 0.8, "random": 0.2}, "need the ids"),
        ({"per": "sentence"}, "per 'sentence'"),
    ],
)
def test_shares_that_cannot_be_are_refused(shares, said):
    with pytest.raises(BesagError, match=said):
        Replacement(MASK, **shares)
