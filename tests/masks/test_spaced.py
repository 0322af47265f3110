"""Gaps as even as they can be, and every token with the same chance."""

import numpy as np
from scipy.stats import chisquare
from tests.masks.example_passages import plain, repeated

from besag.masks import law


def hidden(length, rate, rows=600, seed=1):
    passages = repeated(plain(length), rows)
    return law("spaced").choose(passages, np.full(rows, rate), 0.0, seed=seed).reshape(rows, length)


def test_hidden_tokens_stand_apart():
    for length, count in ((12, 4), (12, 6), (10, 3), (7, 1)):
        masks = hidden(length, count / length)
        assert (masks.sum(1) == count).all()
        for row in masks:
            places = np.flatnonzero(row)
            gaps = np.diff(np.append(places, places[0] + length))  # around the ring
            assert set(gaps) <= {length // count, -(-length // count)}


def test_every_token_has_the_same_chance():
    counts = hidden(10, 0.3, rows=20_000).sum(0)
    assert counts.sum() == 60_000
    assert chisquare(counts).pvalue > 1e-3


def test_special_tokens_do_not_count():
    passages = repeated(plain(8), 50)
    free = passages.free & (passages.place % 2 == 0)
    masks = law("spaced").choose(passages._replace(free=free), np.full(50, 0.5), 0.0, seed=3)
    assert not (masks & ~free).any()
    assert (masks.reshape(50, 8).sum(1) == 2).all()
