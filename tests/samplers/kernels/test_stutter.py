"""What a stutter is, by hand; and the paper's toy law, where plain parallel decoding stutters a quarter of it."""

from __future__ import annotations

import doctest
import math
import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samplers.enumerated import toy

from besag.diagnostics.texts import stutter as rate_of_tokens
from besag.lab.oracles import blank, empirical, follows, run
from besag.samplers import kernel
from besag.samplers.kernels import stutter
from besag.samplers.kernels.stutter import by_word, count, repeated


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dog was walking walking along the road.", (1, 7)),
        ("walking walking walking", (2, 2)),
        ("The the end", (1, 2)),  # whatever the case
        ("that, that", (0, 0)),  # a sign between them: no neighbours
        ("no. No", (0, 0)),
        ("walk walking", (0, 1)),
        ("the\n  the", (1, 1)),
        ("don't don't", (1, 1)),
        ("don’t don’t", (1, 1)),
        ("don't don", (0, 1)),
        ("don don't", (0, 1)),  # not "don", followed by "don"
        ("in 1900 1900 in", (0, 0)),  # numbers are no words
        ("x2 x2", (0, 0)),
        ("straße STRASSE", (1, 1)),
        ("été été", (1, 1)),
        ("((", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_words(text, expected):
    assert count(text) == expected


@given(st.lists(st.sampled_from(["a", "b", "A", "isn't", ",", "7", "\n"]), max_size=12))
@settings(max_examples=60, deadline=None)
def test_words_by_plain_loops(parts):
    """Whatever stands between white space is a word, if it is made of letters and apostrophes."""
    pieces = " ".join(parts).split()
    pairs = [
        (one.casefold(), other.casefold())
        for one, other in pairwise(pieces)
        if re.fullmatch(r"[a-zA-Z']+", one) and re.fullmatch(r"[a-zA-Z']+", other)
    ]
    assert count(" ".join(parts)) == (sum(one == other for one, other in pairs), len(pairs))


def test_rates_and_their_errors():
    assert rate_of_tokens([[1, 1, 2], [3, 3, 3], [4]]).value == 3 / 4
    assert rate_of_tokens([(1, 2), (1, 2)]) == (0, 0)
    assert math.isnan(rate_of_tokens([[5]]).value)
    assert by_word(["a a", "a b", "a b", "a b"]).value == 1 / 4
    # four texts of one pair each: the error of a share of four coin throws, √(p(1−p)/(n−1))
    assert by_word(["a a", "a b", "a b", "a b"]).error == pytest.approx(math.sqrt(0.25 * 0.75 / 3))
    assert math.isnan(by_word(["", "one"]).value)


def test_where_tokens_repeat():
    ids = torch.tensor([[7, 7, 7, 8], [1, 2, 2, 2]])
    free = torch.tensor([[False, True, True, True], [True, True, True, False]])
    expected = torch.tensor([[False, True, True, False], [False, False, True, False]])
    assert torch.equal(repeated(ids, free), expected)


def test_plain_parallel_decoding_stutters_exactly_a_quarter_of_the_time():
    law = toy()
    product = np.zeros((4, 4, 4))
    for second in (1, 2):
        for third in (2, 3):
            product[0, second, third] = 0.25
    plain = kernel("grouped", size=3, order="random")
    assert follows(empirical(plain, law, blank(law, 3, 20_000)), product)
    state, _ = run(plain, law, blank(law, 3, 20_000))
    twice = (repeated(state.ids, torch.ones_like(state.ids, dtype=torch.bool))).any(1)
    assert abs(float(twice.double().mean()) - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 20_000)
    rate = rate_of_tokens(state.ids.tolist())
    assert rate.value == pytest.approx(float(twice.double().mean()) / 2)  # one of two neighbours
    texts = [" ".join(law.vocabulary.token(token) for token in ids) for ids in state.ids.tolist()]
    assert by_word(texts) == rate


def test_one_place_at_a_time_never_stutters():
    law = toy()
    state, _ = run(kernel("grouped", size=1, order="random"), law, blank(law, 3, 2000))
    assert rate_of_tokens(state.ids.tolist()).value == 0


def test_the_example_in_its_documentation():
    assert doctest.testmod(stutter).failed == 0
