import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.alignment import align

LETTERS = st.lists(
    st.sampled_from(["a", "É", "e\u0301", "世", " ", "\t", ",", "##", "▁", "Ġ", "[UNK]", "👍🏽", "ß"]), max_size=8
)


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("Héllo  wörld", ["hell", "##o", "world"], ["Héll", "o", "wörld"]),
        ("cafe\u0301 a", ["cafe", "a"], ["cafe\u0301", "a"]),
        ("xyaz a xyz", ["[UNK]", "a", "[UNK]"], ["xyaz", "a", "xyz"]),
        ("xy,xy, a", ["[UNK]", ",", "[UNK]", ",", "a"], ["xy", ",", "xy", ",", "a"]),
        ("世界 qq rr", ["[UNK]"] * 4, ["世", "界", "qq", "rr"]),
        ("the [UNK] is", ["the", "[UNK]", "is"], ["the", "[UNK]", "is"]),
        ("hello world", ["▁hel", "lo", "▁", "world"], ["hel", "lo", "", "world"]),
        ("hello world", ["Ġhello", "Ġworld"], ["hello", "world"]),
        ("hello world", ["hel@@", "lo", "world</w>"], ["hel", "lo", "world"]),
        ("say ``hi''", ["say", '"', "hi", '"'], ["say", "``", "hi", "''"]),
        ("a ## b", ["a", "##", "b"], ["a", "##", "b"]),
        ("q" * 200 + " a", ["[UNK]", "a"], ["q" * 200, "a"]),
        ("a b", ["a", "b", "c"], ["a", "b", ""]),
        ("a �� b c�", ["a", "b", "c"], ["a", "b", "c"]),
        ("", [], []),
    ],
)
def test_alignment(text: str, pieces: list[str], expected: list[str]) -> None:
    assert [text[start:end] for start, end in align(text, pieces, "[UNK]")] == expected


@given(text=LETTERS.map("".join), pieces=LETTERS | st.lists(st.text(max_size=4), max_size=8))
def test_alignment_of_anything_is_ordered_and_inside(text: str, pieces: list[str]) -> None:
    spans = np.array(align(text, pieces, "[UNK]"), dtype=int).reshape(-1, 2)
    assert len(spans) == len(pieces)
    assert (spans >= 0).all()
    assert (spans <= len(text)).all()
    assert (spans[:, 0] <= spans[:, 1]).all()
    assert (np.diff(spans[:, 0]) >= 0).all()
