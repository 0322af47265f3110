"""Learning a unigram vocabulary: expectations and best cuts against all cuts, one by one."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.training.tokenizer.unigram import _alive, _alternatives, _edges, _expected, _seeds, learn


def cuts(word: str) -> list[list[str]]:
    if not word:
        return [[]]
    return [[word[:end], *rest] for end in range(1, len(word) + 1) for rest in cuts(word[end:])]


WORDS = st.dictionaries(st.text("abé", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=6)


@given(WORDS, st.integers(0, 99))
def test_expectations_are_those_of_all_cuts(words: dict[str, int], seed: int) -> None:
    strings, counts = list(words), np.array(list(words.values()), float)
    letters = sorted({letter for word in words for letter in word})
    pieces, _ = _seeds(strings, counts, letters, 40)
    p = np.random.default_rng(seed).dirichlet(np.ones(len(pieces)))
    chance = dict(zip(pieces, p, strict=True))
    wanted: Counter[str] = Counter()
    for word, count in words.items():
        known = [(cut, math.prod(chance[piece] for piece in cut)) for cut in cuts(word) if set(cut) <= set(pieces)]
        total = sum(value for _, value in known)
        for cut, value in known:
            for piece in cut:
                wanted[piece] += count * value / total  # type: ignore[assignment]
    edges = _edges(strings, pieces)
    found = _expected(edges, strings, counts, pieces, p)
    np.testing.assert_allclose(found, [wanted[piece] for piece in pieces], rtol=1e-8)
    best = _alternatives(pieces, p)
    for place, piece in enumerate(pieces):
        others = [cut for cut in cuts(piece) if len(cut) > 1 and set(cut) <= set(pieces)]
        values = [sum(math.log(chance[part]) for part in cut) for cut in others]
        assert best[place] == pytest.approx(max(values)) if values else best[place] == -math.inf
    alive = np.array([len(piece) < 3 for piece in pieces])
    fewer, left = _alive(pieces, edges, alive)
    for edge, fresh in zip(sorted(left), sorted(_edges(strings, fewer)), strict=True):
        assert (edge.start, edge.end) == (fresh.start, fresh.end)
        assert edge.rows.tolist() == fresh.rows.tolist()
        assert edge.ids.tolist() == fresh.ids.tolist()


def test_seeds_are_substrings_with_their_counts() -> None:
    pieces, weight = _seeds(["abab", "ba"], np.array([3.0, 2.0]), ["a", "b"], 100)
    found = dict(zip(pieces, weight, strict=True))
    assert found["ab"] == 2 * 2 * 3  # length × twice in a word that occurs three times
    assert found["ba"] == 2 * (3 + 2)
    assert found["abab"] == 4 * 3
    assert (found["a"], found["b"]) == (8, 8)


def test_what_belongs_together_is_learnt() -> None:
    generator = np.random.default_rng(0)
    stems = ["".join(generator.choice(list("abcdefghijklm"), 4)) for _ in range(300)]
    ends = ["".join(generator.choice(list("nopqrstuvwxyz"), 3)) for _ in range(10)]
    words = Counter("".join((generator.choice(stems), generator.choice(ends))) for _ in range(1500))
    letters = len({letter for word in words for letter in word})
    found = learn(words, letters + 40)
    assert set(ends) <= found.keys()  # most words are rare, so what they share is worth more than they are
    assert len(found) == letters + 40
    assert sum(math.exp(value) for value in found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)


@given(WORDS, st.integers(0, 8))
def test_letters_stay_and_the_room_is_kept(words: dict[str, int], more: int) -> None:
    letters = {letter for word in words for letter in word}
    found = learn(words, len(letters) + more)
    assert letters <= found.keys()
    assert len(found) <= len(letters) + more
    assert all(math.isfinite(value) for value in found.values())
    assert found == learn(dict(reversed(words.items())), len(letters) + more)


def test_a_long_word_does_not_overflow_or_vanish() -> None:
    found = learn({"ab" * 24: 5, "z" * 200: 1, "a": 3}, 12)
    assert "z" in found
    assert all(math.isfinite(value) for value in found.values())
