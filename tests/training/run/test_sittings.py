from __future__ import annotations

from typing import Any

import pytest

from besag.training.recipe import Recipe, Schedule
from besag.training.run.schedule import Progress
from besag.training.run.sittings import Sitting, Sittings

FIRST = Sitting("2026-11-16T23:50:10+00:00", "2026-11-17T00:20:00+00:00", "NVIDIA H200", 1, 1200, 236_000_000, 1700.2)


def progress(step: int, tokens: int, seconds: float) -> Progress:
    made = Progress(Recipe(schedule=Schedule(steps=100)))
    made.step, made.tokens, made.seconds = step, tokens, seconds
    return made


def test_a_sitting_says_when_on_what_and_how_far() -> None:
    assert str(FIRST) == (
        "2026-11-16 23:50 to 2026-11-17 00:20 UTC on NVIDIA H200: steps 1 to 1,200, 236,000,000 tokens, "
        "28:20 of training"
    )
    same_day = Sitting("2026-11-16T04:20:00+00:00", "2026-11-16T04:48:59+00:00", "CPU", 5, 6, 7, 1.0)
    assert str(same_day).startswith("2026-11-16 04:20 to 04:48 UTC on CPU: ")


def test_the_one_that_lasts_comes_after_those_before() -> None:
    now = progress(1200, 236_000_000, 1700.2)
    sittings = Sittings([FIRST.__dict__], "CPU", now)
    assert sittings.all() == [FIRST]  # nothing was trained yet
    now.step, now.tokens, now.seconds = 1500, 237_000_000, 1760.2
    [first, second] = sittings.all()
    assert first == FIRST
    assert (second.first, second.last, second.tokens, second.hardware) == (1201, 1500, 1_000_000, "CPU")
    assert second.seconds == pytest.approx(60)
    assert [Sitting(**one) for one in sittings.saved()] == [first, second]


@pytest.mark.parametrize(
    "wrong", [{"begun": "yesterday"}, {"tokens": "many"}, {"first": -1}, {"hardware": 3}, {"begun": 3}]
)
def test_what_is_no_sitting_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Sittings([{**FIRST.__dict__, **wrong}], "CPU", progress(0, 0, 0.0))
