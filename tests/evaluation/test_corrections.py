"""Changes, F1, GLEU and the confusion table by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.evaluation.corrections import (
    Confusions,
    changes,
    counts,
    drawn_counts,
    f1,
    gleu,
    gleu_counts,
    mean_gleu,
    units,
)

SOURCE, MEANT = "the cat sat on a mat todya", "the cat sat on a mat today"


def one(source: str, hypothesis: str, reference: str) -> float:
    return gleu(np.array(gleu_counts(source, hypothesis, reference), float))


def test_gleu_by_hand() -> None:
    assert one(SOURCE, MEANT, MEANT) == pytest.approx(1.0)
    # doing nothing: of 7, 6, 5, 4 n-grams one less matches, and the one with the error is taken off besides
    assert gleu_counts(SOURCE, SOURCE, MEANT) == [7, 7, 5, 7, 4, 6, 3, 5, 2, 4]
    assert one(SOURCE, SOURCE, MEANT) == pytest.approx((5 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25)
    # a word is missing, and it was wrong: nothing is taken off, but the text is short
    assert one(SOURCE, "the cat sat on a mat", MEANT) == pytest.approx(math.exp(1 - 7 / 6))
    # another wrong word: it is not of the source, so it only fails to match
    assert gleu_counts(SOURCE, "the cat sat on a mat now", MEANT) == [7, 7, 6, 7, 5, 6, 4, 5, 3, 4]
    assert one("a b", "a b", "a b") == 0.0  # there is no n-gram of four, and the published figure is 0 then


def test_an_ngram_that_the_reference_keeps_is_not_taken_off() -> None:
    # "a" stands twice in the source and once in the reference: it is in the reference, so only a match is missing
    assert gleu_counts("a a b", "a a b", "a b b")[2] == 2


def test_several_references_are_drawn() -> None:
    both = [gleu_counts(SOURCE, SOURCE, MEANT), gleu_counts(SOURCE, SOURCE, SOURCE)]
    alone = [gleu(np.array(row, float)) for row in both]
    assert drawn([both], draws=4000) == pytest.approx(np.mean(alone), abs=0.02)
    assert drawn([[both[0]], [both[0]]]) == pytest.approx(alone[0])
    assert drawn([both], draws=50, seed=1) == drawn([both], draws=50, seed=1)
    assert drawn_counts([both, both[:1]], draws=50).shape == (2, 50 * 10)


def drawn(sentences: list[list[list[int]]], **options: int) -> float:
    return mean_gleu(drawn_counts(sentences, **options).sum(0).astype(float))


def test_counts_of_a_sentence_and_its_characters() -> None:
    written, meant = "我跟朋唷打算去法国晚儿", "我跟朋友打算去法国玩儿"
    assert counts(written, meant, meant) == [1, 1, 1, 1, 2, 2, 2, 2]
    assert counts(written, written, meant) == [0, 1, 0, 0, 0, 2, 0, 0]
    assert counts(written, "我跟朋友打算去法国晚儿", meant) == [1, 1, 0, 0, 1, 2, 1, 1]  # one of two
    assert counts(written, "我跟朋又打算去法国玩儿", meant) == [1, 1, 1, 0, 2, 2, 2, 1]  # found, not mended
    assert counts(meant, written, meant) == [1, 0, 0, 0, 2, 0, 0, 0]  # a false alarm


def test_f1_by_hand() -> None:
    assert f1(1, 2, 4) == pytest.approx(2 * (1 / 2) * (1 / 4) / (1 / 2 + 1 / 4))
    assert f1(0, 0, 3) == 0.0
    assert math.isnan(f1(0, 0, 0))


@given(st.text("ab c", max_size=8), st.text("ab c", max_size=8))
def test_changes_lead_to_the_other_text(written: str, other: str) -> None:
    found, text = changes(written, other), ""
    for place, letter in enumerate(written):
        text += found.get(-1 - place, "") + found.get(place, letter)
    assert text + found.get(-1 - len(written), "") == other


def test_a_confusion_is_learnt_where_it_is_usual() -> None:
    pairs = [
        ("teh cat", "the cat"),
        ("teh dog", "the dog"),
        ("a lot", "a lot"),
        ("a cat", "the cat"),
        ("alot", "a lot"),
    ]
    table = Confusions.learn(pairs)
    assert table.instead == {"teh": "the"}  # "a" stayed as often as not, and "alot" became two
    assert table.correct("teh  teh a Teh") == "the  the a Teh"
    assert Confusions.learn([("朋唷", "朋友")]).correct("唷!") == "友!"


def test_units_are_words_and_single_characters() -> None:
    assert units(" don't 你好,x ") == ["don't", "你", "好", ",x"]
