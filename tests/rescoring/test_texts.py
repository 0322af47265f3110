"""What a model is shown of a hypothesis."""

import pytest

from besag.rescoring.texts import prepared


@pytest.mark.parametrize(
    ("casing", "stop", "shown"),
    [
        ("keep", False, "I SAID I'LL GO IN"),
        ("lower", False, "i said i'll go in"),
        ("upper", True, "I SAID I'LL GO IN."),
        ("sentence", True, "I said I'll go in."),
    ],
)
def test_casing_and_full_stop(casing, stop, shown) -> None:
    assert prepared("I SAID I'LL GO IN", casing, stop) == shown


def test_what_ends_already_and_what_is_empty() -> None:
    assert prepared("why?", full_stop=True) == "why?"
    assert prepared("", "sentence", full_stop=True) == "."
    assert prepared("", "sentence") == ""
