"""Accuracy and F1, against counts by hand; spans against CoNLL's reading of tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.heads.measures import f1, measured, span_f1, spans


def test_by_hand():
    true, said = [("a",), ("a",), ("b",), ("b",)], [("a",), ("b",), ("b",), ("b",)]
    found = measured(true, said, "a")
    assert found == pytest.approx({"accuracy": 0.75, "macro_f1": (2 / 3 + 0.8) / 2, "usual_accuracy": 0.5})
    assert f1(["a", "a", "b", "b"], ["a", "b", "b", "b"]) == pytest.approx({"a": 2 / 3, "b": 0.8})


def test_spans_as_conll_reads_them():
    assert spans(["B-A", "I-A", "B-A", "O", "I-B", "I-A"]) == {(0, 2, "A"), (2, 3, "A"), (4, 5, "B"), (5, 6, "A")}
    assert spans(["O", "O"]) == set()
    assert span_f1([["B-A", "I-A", "O"]], [["B-A", "O", "O"]]) == 0.0  # half of a span is none
    assert span_f1([["B-A", "O", "B-B"]], [["B-A", "O", "O"]]) == pytest.approx(2 / 3)


def test_spans_are_measured_only_where_tags_mark_them():
    assert "span_f1" in measured([["B-A", "O"]], [["B-A", "O"]], "O")
    assert "span_f1" not in measured([["NOUN", "O"]], [["NOUN", "O"]], "O")


LABELS = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)


@given(LABELS, st.data())
def test_they_are_shares_and_one_only_if_all_is_right(true, data):
    said = data.draw(st.lists(st.sampled_from("abc"), min_size=len(true), max_size=len(true)))
    found = measured([true], [said], "a")
    assert all(0 <= value <= 1 for value in found.values())
    assert (found["accuracy"] == 1) == (true == said) == (found["macro_f1"] == 1)
    swapped = f1(said, true)
    assert f1(true, said) == pytest.approx(swapped)
