"""Texts of items through one stream: every score the one that the text has alone, each distinct text once, in order."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting

import besag
from besag.evaluation.asking import Ask, scores_of
from besag.scores import method


class Thing(NamedTuple):
    asks: tuple[Ask, ...]


LM = besag.load(Arbitrary(3))
WORDS = ["s0", "s1", "s2"]
asks = st.builds(
    Ask,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    st.sampled_from(["", "s1", "s2 s0"]),
    st.sampled_from(["", "s0"]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(asks, max_size=3), max_size=12), st.sampled_from([None, 1, 2, 5]))
def test_items_come_in_order_each_with_the_scores_its_asks_have_alone(each: list[list[Ask]], block: int | None) -> None:
    things = [Thing(tuple(one)) for one in each]
    found = list(scores_of(LM.engine, things, method("pll"), None, block))
    assert [thing for thing, _ in found] == things
    for thing, scores in found:
        for ask, score in zip(thing.asks, scores, strict=True):
            alone = LM.score(ask.text, prefix=ask.prefix, suffix=ask.suffix)
            assert score.text == ask.text
            assert score.total == pytest.approx(alone.total, abs=1e-9)


@pytest.mark.parametrize("block", [None, 4])
def test_equal_texts_are_asked_once_wherever_they_stand(block: int | None) -> None:
    law = Counting(Arbitrary(3))
    texts = ["s0 s1 s2", "s1 s1", "s2 s0 s0", "s2"]
    things = [Thing((Ask(random.Random(place).choice(texts)), Ask(texts[place % 4]))) for place in range(40)]
    list(scores_of(besag.load(law).engine, things, method("unmasked"), None, block))
    assert len(law.sequences) == len(texts)


def test_what_is_said_for_all_is_kept_for_all() -> None:
    [(_, (score,))] = scores_of(LM.engine, [Thing((Ask("s0 s1"),))], method("pll"), {"entropy": True, "rank": True})
    assert score.entropy is not None
    assert score.rank is not None
