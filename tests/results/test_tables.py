"""Text in columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.results.tables import STEERING as STEERS
from besag.results.tables import aligned, display_width, is_right_to_left, raw, shown, visible, wrapped

WORDS = st.text("abc de", min_size=1, max_size=12).map(str.strip).filter(bool)


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("🦜", 2), ("a\u200db", 2), ("", 0)]
)
def test_display_width(text, columns):
    assert display_width(text) == columns


@pytest.mark.parametrize(("text", "answer"), [("abc", False), ("שלום", True), ("1 שלום", True), ("12", None)])
def test_direction(text, answer):
    assert is_right_to_left(text) is answer


def test_white_space_is_made_visible():
    assert visible("a b\n\t\x00") == "a␣b↵⇥\\x00"
    assert raw("▁man") == "␣man"


@given(st.lists(WORDS, min_size=1), st.integers(5, 60))
def test_lines_break_between_facts_only(facts, width):
    lines = wrapped(facts, width).split("\n")
    assert [fact for line in lines for fact in line.split(" · ")] == facts
    assert all(display_width(line) <= width or line in facts for line in lines)


@given(st.lists(st.tuples(*[st.text("ab日🦜é1", min_size=1, max_size=6)] * 3), min_size=1))
def test_columns_line_up(rows):
    sizes = [max(display_width(row[i]) for row in rows) for i in range(3)]
    for line, row in zip(aligned(rows, left=(0,)).split("\n"), rows, strict=True):
        assert line.startswith(row[0])
        assert line.endswith(row[2])
        assert display_width(line) == sum(sizes) + 4


ORDINARY = "naïve café 👩\u200d🚀 e\u0301 שלום \u200f(1)\tand\nmore \u2028 ﷽"
STEERING = "\x00\x07\x08\x0b\x1b[31m\r\x7f\x80\x85\x9b2J\x9f\u202a\u202e\u2066\u2069\ud800"


def test_ordinary_text_is_shown_as_it_is():
    assert shown(ORDINARY) == ORDINARY


@given(st.text() | st.text(st.sampled_from(STEERING)))
def test_nothing_that_is_shown_steers(text):
    assert not STEERS.search(shown(text))
    assert not STEERS.search(visible(text))
    shown(text).encode("utf-8")  # no half of a surrogate is left
    assert shown(shown(text)) == shown(text)


def test_what_steers_is_written_out():
    assert shown(STEERING).startswith(r"\x00\x07\x08\x0b\x1b[31m\r\x7f\x80\x85\x9b2J\x9f\u202a\u202e")
    assert visible("a\x1b \u202e") == r"a\x1b␣\u202e"
    assert aligned([["a\nb", "\x1b"], ["c", "d"]], left=[0]) == "a↵b  \\x1b\nc       d"
    assert wrapped(["\x1b]0;title\x07", "\x9b2J"], 80) == r"\x1b]0;title\x07 · \x9b2J"
