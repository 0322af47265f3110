"""Numbers of n-grams, against their definitions as plain loops and against examples worked by hand."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.diagnostics import grams as grams_of
from besag.diagnostics.grams import Grams
from besag.diagnostics.texts import self_bleu, stutter

LETTERS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), min_size=2, max_size=7)


# ---- definitions as loops


def grams(text, k):
    return [tuple(text[i : i + k]) for i in range(len(text) - k + 1)]


def bleu_by_loops(text, others, n):
    logs = []
    for k in range(1, n + 1):
        own = Counter(grams(text, k))
        if not own:
            continue
        matches = sum(min(count, max(Counter(grams(o, k))[g] for o in others)) for g, count in own.items())
        logs.append(math.log((matches or 0.1) / sum(own.values())))
    lengths = sorted({len(o) for o in others})
    nearest = min(lengths, key=lambda r: (abs(r - len(text)), r))
    return min(1.0, math.exp(1 - nearest / len(text))) * math.exp(sum(logs) / len(logs))


@given(LETTERS, st.integers(1, 4))
def test_self_bleu_is_its_definition(sample, n):
    known = [bleu_by_loops(text, sample[:i] + sample[i + 1 :], n) for i, text in enumerate(sample)]
    np.testing.assert_allclose(Grams(sample, n).bleu(), known, rtol=1e-12)
    assert self_bleu(sample, n) == (pytest.approx(np.mean(known)), len(sample))


@given(LETTERS, st.lists(st.lists(st.sampled_from("abcd"), max_size=12), max_size=5), st.integers(1, 4))
def test_distinct_novelty_stutter_and_entropy_are_their_definitions(sample, reference, n):
    found = Grams(sample, n)
    new = found.novelty(reference)
    for k in range(1, n + 1):
        own = [gram for text in sample for gram in grams(text, k)]
        held = {gram for line in reference for gram in grams(line, k)}
        if own:
            assert found.distinct()[k - 1] == pytest.approx(len(set(own)) / len(own))
            assert new[k - 1] == pytest.approx(np.mean([gram not in held for gram in own]))
        else:
            assert math.isnan(found.distinct()[k - 1])
            assert math.isnan(new[k - 1])
    pairs = [(a, b) for text in sample for a, b in itertools.pairwise(text)]
    if pairs:
        assert stutter(sample).value == pytest.approx(np.mean([a == b for a, b in pairs]))
    counts = np.array(list(Counter(w for text in sample for w in text).values()))
    assert found.entropy() == pytest.approx(-sum(c / counts.sum() * math.log2(c / counts.sum()) for c in counts))


# ---- by hand


def test_examples_worked_by_hand():
    one, two = ["the", "cat", "sat"], ["the", "cat", "ran", "home"]
    # 1-grams 2/3, 2-grams 1/2; the other text is longer: e^(1 − 4/3)
    [first, second] = Grams([one, two], 2).bleu()
    assert first == pytest.approx(math.exp(-1 / 3) * math.sqrt(2 / 3 * 1 / 2))
    assert second == pytest.approx(math.sqrt(2 / 4 * 1 / 3))  # longer than the other: no penalty
    # no 3-gram is shared: 0.1 of the one (two) that there are
    assert Grams([one, two], 3).bleu()[0] == pytest.approx(math.exp(-1 / 3) * (2 / 3 * 1 / 2 * 0.1) ** (1 / 3))
    # clipped: "a a a" finds one a in the other text
    assert Grams([["a"] * 3, ["a", "b", "c"]], 1).bleu()[0] == pytest.approx(1 / 3)
    assert self_bleu([["x", "y", "z", "w"]] * 5) == (1.0, 5)
    assert Grams([one, two], 2).distinct() == (pytest.approx(5 / 7), pytest.approx(4 / 5))
    assert stutter([["The", "dog", "was", "walking", "walking", "along"]]).value == pytest.approx(1 / 5)
    assert Grams([["a", "b", "a", "b"]], 1).entropy() == pytest.approx(1.0)


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_a_reference_is_read_in_blocks_that_change_nothing(monkeypatch, block):
    rng = np.random.default_rng(1)
    sample = [rng.integers(0, 6, size=10).tolist() for _ in range(5)]
    reference = [rng.integers(0, 8, size=rng.integers(0, 9)).tolist() for _ in range(40)]
    whole = Grams(sample, 4).novelty(reference)
    monkeypatch.setattr(grams_of, "BLOCK", block)
    assert Grams(sample, 4).novelty(iter(reference)) == whole
