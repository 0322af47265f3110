"""Utilities are those of sacrebleu, sentence by sentence; the least risk is that of a plain loop."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from besag.translation.utility import bleu, chrf, expected

SENTENCE = st.lists(st.sampled_from(["two", "dogs", "run", "ran", "on", "the", "beach", "."]), max_size=9).map(" ".join)
TEXTS = ["two dogs run on the beach .", "two dogs ran on a beach .", "a cat"]


@settings(max_examples=150, deadline=None)
@given(SENTENCE, SENTENCE)
def test_they_are_sacrebleus(one: str, other: str) -> None:
    metrics = pytest.importorskip("sacrebleu.metrics")
    if not one or not other:
        return
    assert chrf(one, other) == pytest.approx(metrics.CHRF().sentence_score(one, [other]).score, abs=1e-6)
    theirs = metrics.BLEU(effective_order=True, tokenize="none")
    assert bleu(one, other) == pytest.approx(theirs.sentence_score(one, [other]).score, abs=1e-6)


@pytest.mark.parametrize("utility", [chrf, bleu])
def test_the_ends_of_the_scale(utility) -> None:
    assert utility("two dogs", "two dogs") == pytest.approx(100)
    assert utility("", "") == 100
    assert utility("two", "") == utility("", "two") == utility("two", "xyz") == 0


def test_expected_utility_weighs_by_how_often_a_text_was_found() -> None:
    found = expected(TEXTS, [1, 2, 1], "chrf")
    by_hand = [sum(w * chrf(a, b) for b, w in zip(TEXTS, [1, 2, 1], strict=True)) / 4 for a in TEXTS]
    assert found == pytest.approx(by_hand)
    assert max(range(3), key=lambda at: found[at]) == 1
