"""p(n) is fitted to the tokens that texts have, without special ones."""

from __future__ import annotations

from tests.laws import Arbitrary

from besag.engine import IDLE
from besag.scores.fitting import length_model


def test_texts_are_counted_in_tokens_of_the_model() -> None:
    found = length_model(Arbitrary(3), iter(["s0 s1", "s2", IDLE, "s1 s1", "s0 s0 s0"]))  # type: ignore[list-item]
    assert dict(found.counts) == {1: 1, 2: 2, 3: 1}
    assert found.fitted_with == "arbitrary"
