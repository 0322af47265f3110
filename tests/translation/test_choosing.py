"""Who decides among targets: each way by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.translation import pairs

from besag.errors import BesagError
from besag.translation.choosing import Choice, Hypothesis
from besag.translation.left_to_right import forced, translate

SOURCES = ["the cat table", "dogs night"]
TEXTS = [["cats dogs sleep", "cats dogs", "cats dogs sleep", "man man man"], ["mat man", "mat man mat"]]
FOUND = [[Hypothesis(text, -1.0 - at, 3, 2) for at, text in enumerate(own)] for own in TEXTS]


def test_what_says_the_same_is_one_that_was_found_twice(masked: Any) -> None:
    first, second = Choice().rank(masked.engine, SOURCES, FOUND)
    assert [(one.text, one.score, one.passes, one.found) for one in first] == [
        ("cats dogs sleep", -1.0, 4, 2), ("cats dogs", -2.0, 2, 1), ("man man man", -4.0, 2, 1),
    ]  # fmt: skip
    assert [one.text for one in second] == TEXTS[1]


@pytest.mark.parametrize("name", ["pll", "chain"])
def test_by_a_score_of_the_translator(masked: Any, name: str) -> None:
    ranked = Choice(name).rank(masked.engine, SOURCES, FOUND)
    lengths = {"lengths": "predicted"} if name == "chain" else {}
    for source, own in zip(SOURCES, ranked, strict=True):
        assert own[0].text == pairs.translated(source) or name == "pll"
        for one in own:
            score = masked.given(source).score(one.text, name, **lengths)
            assert one.score == pytest.approx(score.total / len(score.tokens), abs=1e-4)


def test_by_a_judge_from_the_left(masked: Any, causal: Any) -> None:
    ranked = Choice("judge", causal).rank(masked.engine, SOURCES, FOUND)
    for source, own in zip(SOURCES, ranked, strict=True):
        assert own[0].text == pairs.translated(source)
        for one in own:
            inside = causal.given(source).score(one.text, "causal").total
            words = len(one.text.split())
            assert one.score * (words + 1) <= inside + 1e-4  # the end comes on top


def test_forced_is_what_the_beam_says(causal: Any) -> None:
    found = translate(causal.conditionals, SOURCES, beam=3)
    for source, own in zip(SOURCES, found, strict=True):
        for batch in (8, 8192):
            told = forced(causal.conditionals, [source] * len(own), [one.text for one in own], batch_tokens=batch)
            np.testing.assert_allclose(told, [one.log_prob / (len(one.ids) + 1) for one in own], atol=1e-3)
    assert forced(causal.conditionals, ["the"], [" ".join(["cat"] * 2000)]) == [None]


def test_by_least_risk(masked: Any) -> None:
    ranked = Choice("mbr").rank(masked.engine, SOURCES, FOUND)
    assert ranked[0][0].text == "cats dogs sleep"  # found twice, and near the second
    assert ranked[0][-1].text == "man man man"
    assert all(0 <= one.score <= 100 for own in ranked for one in own)


def test_what_is_refused(masked: Any, causal: Any) -> None:
    for options, told in (
        ({"by": "ppl"}, "pll"), ({"by": "judge"}, "say which"), ({"judge": causal}, "say choose='judge'"),
        ({"by": "judge", "judge": masked}, "left-to-right"),
    ):  # fmt: skip
        with pytest.raises(BesagError, match=told):
            Choice(**options)
    silent = [[Hypothesis("a", None, 1, 1), Hypothesis("b", None, 1, 1)]]
    with pytest.raises(BesagError, match="no score of their own"):
        Choice().rank(masked.engine, ["cat"], silent)
