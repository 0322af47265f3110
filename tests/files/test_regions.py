"""Regions as users write them: where they stand in the text that is scored, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.reading import put, read

from besag.errors import BesagError
from besag.files import regions


def parts(text: str, found: regions.Regions) -> list[str]:
    return [text[start:end] for start, end in found.spans]


@pytest.mark.parametrize(
    ("said", "text", "expected"),
    [
        ("The cat | sat | down.", "The cat sat down.", ["The cat", "sat", "down."]),
        ("The cat| sat |down.", "The cat sat down.", ["The cat", "sat", "down."]),
        ("The cat|s sat|.", "The cats sat.", ["The cat", "s sat", "."]),  # no space, and none is made
        ("| The cat | | sat |", "The cat sat", ["", "The cat", "", "sat", ""]),
        ("No sign.", "No sign.", ["No sign."]),
        ("", "", [""]),
    ],
)
def test_a_text_is_cut_at_the_sign(said: str, text: str, expected: list[str]) -> None:
    found, cut = regions.cut(said, "|")
    assert (found, parts(found, cut), list(cut.labels)) == (text, expected, list(range(1, len(expected) + 1)))


@given(st.lists(st.sampled_from(["", "The", "cat s", "日本", "don't"]), min_size=1))
def test_what_is_listed_is_what_is_cut_at_a_sign_with_spaces(words: list[str]) -> None:
    text, found = regions.listed(words, "here")
    assert (text, found) == regions.cut(" || ".join(words), "||")
    assert text == " ".join(filter(None, words))
    assert parts(text, found) == words
    assert [one for span in found.spans for one in span] == sorted(one for span in found.spans for one in span)


def test_regions_may_have_names() -> None:
    text, found = regions.listed({"np": "The cat", "verb": "sat."}, "here")
    assert (text, list(found.labels), parts(text, found)) == ("The cat sat.", ["np", "verb"], ["The cat", "sat."])
    with pytest.raises(BesagError, match="here: a region is a text, and 3 is none"):
        regions.listed(["The", 3], "here")


@pytest.mark.parametrize("said", ["0-3, 4-7", "0:3,4:7", [[0, 3], [4, 7]]])
def test_spans(said: object) -> None:
    found = regions.spans(said, "The cat", "here")
    assert (found.spans, found.labels, found.tiling) == ([(0, 3), (4, 7)], ["0-3", "4-7"], False)


@pytest.mark.parametrize(("said", "least"), [("", 0), (None, 0), ("1-2", 1)])
def test_a_text_may_have_no_spans(said: object, least: int) -> None:
    assert len(regions.spans(said, "The cat", "here").spans) == least


@pytest.mark.parametrize("said", ["4-8", "3-3", "4-2", "0-3,2-5", "4-7,0-3", "0-3,", "a-b", "3", [[0, 3], [2, 4]]])
def test_what_is_no_span_is_refused_and_quoted(said: object) -> None:
    with pytest.raises(BesagError, match=r"here: .* is no span after character"):
        regions.spans(said, "The cat", "here")


@pytest.mark.parametrize("said", [3, [3, 7], [[0, 1, 2]], [[0, True]], {"a": 1}])
def test_what_json_says_otherwise_is_refused(said: object) -> None:
    with pytest.raises(BesagError, match='write "3-7,8-12", or'):
        regions.spans(said, "The cat", "here")


# ---- from files


def test_regions_come_with_records(tmp_path: Path) -> None:
    rows = [{"item": 1, "regions": ["The cat", "sat."]}, {"item": 2, "regions": {"a": "It", "b": "rains."}}]
    path = put(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    first, second = read(path, sign="|")
    assert (first.text, first.others, list(first.regions.labels)) == ("The cat sat.", {"item": 1}, [1, 2])  # type: ignore[union-attr]
    assert (second.text, list(second.regions.labels)) == ("It rains.", ["a", "b"])  # type: ignore[union-attr]
    with pytest.raises(BesagError, match=r"which column holds the texts|not a text"):
        read(path)


def test_spans_come_with_records(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", "text\tat\tid\nThe cat\t4-7\t9\n")
    (record,) = read(path, spans="at")
    assert (record.text, record.regions.spans) == ("The cat", [(4, 7)])  # type: ignore[union-attr]
    assert record.others == {"at": "4-7", "id": "9"}
    with pytest.raises(BesagError, match=r"--spans-column 'att' is no column.*Did you mean 'at'"):
        read(path, spans="att")
    with pytest.raises(BesagError, match=r"--spans-column 'at': .*a.txt has no columns"):
        read(put(tmp_path / "a.txt", "The cat"), spans="at")


def test_texts_without_regions_have_none() -> None:
    (record,) = read("a | b", as_text=True)
    assert (record.text, record.regions) == ("a | b", None)
