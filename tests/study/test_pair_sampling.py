"""Pairs of places: the right ones, evenly, each once, and the same whatever is drawn beside them."""

import functools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import tokenizers

from besag.errors import BesagError
from besag.study.pair_sampling import Scheme, sample_pairs, schemes
from besag.vocabulary import Vocabulary

symbols = Vocabulary.of_symbols([f"s{number}" for number in range(5)])
ALL = schemes(["random", "contiguous", "distance"], [2, 5])


@functools.cache
def text(length: int):
    return symbols.encode([" ".join(f"s{i % 5}" for i in range(length))])[0]


@given(st.integers(0, 12), st.integers(1, 4), st.integers(0, 5))
def test_every_text_has_its_pairs_or_says_why_not(length, per_text, seed):
    pairs = sample_pairs(text(length), 7, ALL, per_text=per_text, seed=seed)
    assert [pair.scheme for pair in pairs] == [kind for kind in ALL for _ in range(per_text)]
    possible = {"random": length * (length - 1) // 2, "contiguous": max(length - 1, 0)}
    for kind in ALL:
        mine = [pair for pair in pairs if pair.scheme == kind]
        there = possible.get(kind.name, max(length - kind.distance, 0))
        good = [pair for pair in mine if pair.status == "ok"]
        assert len(good) == min(per_text, there)
        assert len({frozenset((pair.a, pair.b)) for pair in good}) == len(good)
        assert {pair.status for pair in mine if pair not in good} <= {"empty" if length == 0 else "short"}
        for pair in good:
            assert 0 <= min(pair.a, pair.b) < max(pair.a, pair.b) < length
            if kind.name != "random":
                assert pair.b - pair.a == (kind.distance or 1)


def test_every_ordered_pair_is_drawn_equally_often():
    """2,400 draws over 12 ordered pairs, each expected 200 times: known to ±41 (three standard errors)."""
    drawn = Counter((pair.a, pair.b) for n in range(2400) for pair in sample_pairs(text(4), n, [Scheme("random")]))
    assert len(drawn) == 12
    assert all(abs(count - 200) < 3 * (2400 * 11 / 144) ** 0.5 for count in drawn.values())
    starts = Counter(sample_pairs(text(4), n, [Scheme("contiguous")])[0].a for n in range(3000))
    assert all(abs(starts[a] - 1000) < 3 * (3000 * 2 / 9) ** 0.5 for a in range(3))


def test_several_pairs_of_a_text_are_even_too():
    drawn = Counter(
        frozenset((pair.a, pair.b))
        for n in range(2000)
        for pair in sample_pairs(text(4), n, [Scheme("random")], per_text=3)
    )
    assert len(drawn) == 6
    assert all(abs(count - 1000) < 3 * (2000 / 4) ** 0.5 for count in drawn.values())


@given(st.integers(1, 1000), st.integers(0, 3))
def test_what_is_drawn_depends_on_seed_and_number_alone(number, seed):
    few = sample_pairs(text(9), number, ALL[:1], seed=seed)
    many = sample_pairs(text(9), number, ALL[::-1], seed=seed, per_text=3)
    assert few[0] in many
    assert next(pair for pair in many if pair.scheme == ALL[0]) == few[0]


def test_special_and_unknown_tokens_are_passed_over():
    vocabulary = Vocabulary(tokenizers.build("wordpiece-uncased"))
    [encoded] = vocabulary.encode(["the 象 cat"])
    assert vocabulary.unknown_id in encoded.ids
    special = np.flatnonzero(encoded.special)
    inner = np.setdiff1d(np.arange(vocabulary.size), list(vocabulary.special_ids))
    drawn = [sample_pairs(encoded, n, [Scheme("random")], ordinary=inner)[0] for n in range(20)]
    assert {frozenset((pair.a, pair.b)) for pair in drawn} == {frozenset((1, 3))}
    assert sample_pairs(encoded, 1, [Scheme("contiguous")], ordinary=inner)[0].status == "short"
    anywhere = [sample_pairs(encoded, n, [Scheme("random")])[0] for n in range(50)]
    assert {place for pair in anywhere for place in (pair.a, pair.b)} == {1, 2, 3}
    assert not set(special) & {1, 2, 3}


def test_a_text_longer_than_the_model_gives_pairs_it_can_see_together():
    drawn = [sample_pairs(text(60), n, schemes(["random", "distance"], [9, 10]), max_length=10) for n in range(50)]
    assert all(1 <= abs(random.a - random.b) < 10 for random, _, _ in drawn)
    assert {near.status for _, near, _ in drawn} == {"ok"}
    assert {far.status for _, _, far in drawn} == {"far"}


def test_a_text_with_a_mask_has_no_pairs():
    [encoded] = symbols.encode(["s1 [MASK] s2"])
    assert {pair.status for pair in sample_pairs(encoded, 1, ALL, mask_id=symbols.mask_id)} == {"mask"}


def test_wrong_schemes_are_refused():
    with pytest.raises(BesagError, match="Did you mean 'contiguous'"):
        schemes(["contigous"])
    with pytest.raises(BesagError, match="once"):
        schemes(["random", "random"])
    with pytest.raises(BesagError, match="from 1 on, not 0, 2"):
        schemes(["distance"], [0, 2])
    assert [str(kind) for kind in ALL] == ["random", "contiguous", "distance 2", "distance 5"]
