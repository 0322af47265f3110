"""Conditions on rows."""

from __future__ import annotations

import pickle

import pytest

from besag.bulk.keeping import Keep
from besag.errors import BesagError

ROW = {"text": "a", "pll": -12.0, "tokens": 4, "status": "ok", "mean": float("nan"), "none": None}


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("score > -40", True),
        ("score > -4", False),
        ("pll / tokens > -4 and tokens < 100", True),
        ("pll / tokens > -2 or tokens == 4", True),
        ("not tokens == 4", False),
        ("-20 < score <= -12", True),
        ("-20 < score < -12", False),
        ("(tokens - 4) * 2 != 0", False),
        ("mean > 0", True),  # not judged: it stays
        ("none > 0", True),
        ("tokens / (tokens - 4) > 1", True),
    ],
)
def test_conditions(said: str, kept: bool) -> None:
    assert Keep(said)(ROW, "pll") is kept
    assert pickle.loads(pickle.dumps(Keep(said)))(ROW, "pll") is kept


@pytest.mark.parametrize(
    "said",
    ["", "score", "1", "score >", "score > 'a'", "__import__('os')", "score.real > 1", "score > f(1)", "a[0] > 1",
     "score ** 2 > 1", "score in (1, 2)", "True and score", "lambda: 1", "score > 1j", "x := 3"],
)  # fmt: skip
def test_nothing_else_is_understood(said: str) -> None:
    with pytest.raises(BesagError, match=r"--keep .*write a comparison"):
        Keep(said)


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(BesagError, match=r"no column 'tokns'.*Did you mean 'tokens'"):
        Keep("tokns > 4").check(ROW, "pll")
    Keep("score > 4").check(ROW, "pll")
