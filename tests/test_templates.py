"""A template's columns and its gap; what columns hold is text."""

from __future__ import annotations

import pytest

from besag.errors import BesagError
from besag.templates import around, columns, filled, with_gap


def test_columns_and_gap() -> None:
    template = "{premise} So {hypothesis} {target}, {premise}"
    assert columns(template) == ["premise", "hypothesis"]
    row = {"premise": "a {hypothesis}", "hypothesis": 3, "label": "x"}
    assert around(template, row) == ("a {hypothesis} So 3 ", ", a {hypothesis}")
    assert around(with_gap(template), row) == around(template, row)
    assert filled("{premise}!", row) == "a {hypothesis}!"


@pytest.mark.parametrize(
    ("template", "row", "words"),
    [
        ("{a} and", {"a": "x"}, "write .* once, where the answer stands"),
        ("{a} [MASK] {target}", {"a": "x"}, "once"),
        ("{txt} [MASK]", {"text": "x"}, "wants {txt}, and a row has text. Did you mean 'text'"),
        ("{a} [MASK]", {"a": None}, "has nothing there"),
    ],
)
def test_what_is_refused(template: str, row: dict[str, object], words: str) -> None:
    with pytest.raises(BesagError, match=words):
        around(template, row)
