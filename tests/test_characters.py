"""Texts that no encoding can write: told apart, and shown with escapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.characters import all_shown, is_text, shown


@given(st.text(st.characters()))
def test_a_text_is_what_can_be_encoded(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        assert not is_text(text)
        shown(text).encode()
    else:
        assert is_text(text)
        assert shown(text) == text


@given(st.binary())
def test_strange_bytes_are_shown_as_bytes(data: bytes) -> None:
    """The same as Python's own escapes, which are written where decoding fails."""
    assert shown(data.decode("utf-8", "surrogateescape")) == data.decode("utf-8", "backslashreplace")


@pytest.mark.parametrize(
    ("text", "expected"), [("a\ud800", "a\\ud800"), ("\udc00b", "\\udc00b"), ("é\udce9", "é\\xe9")]
)
def test_halves_of_pairs_are_shown_by_their_numbers(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_nests_are_gone_through() -> None:
    assert all_shown({"\ud800": ["a\ud801", ("é", 3, None)]}) == {"\\ud800": ["a\\ud801", ["é", 3, None]]}
