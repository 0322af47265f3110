from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.training.data.sentences import sentences


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith paid $3.50.", "Did he?", "Yes!"],
        ["He lives in the U.S.", "He likes it.", "The U.S. Army came."],
        ['"Why?" he asked.', '"Go!"', '"Never."', "She left."],
        ["It ended (at last.)", "Then it rained."],
        ["J. R. R. Tolkien wrote it.", "World War I.", "The end."],
        ["See No. 5 and Fig. 3.", "No.", "She went on Jan. 3 at 5 p.m. on Monday."],
        ["Some, e.g. Greeks, i.e. Athenians, left.", "Mrs. Jones vs. Mr. Brown."],
        ["1. Introduction is short.", "IV. Of kings and queens.", "It cost 5.", "He paid."],
        ["Wait . . . what?", "Well...", "Perhaps…", "No."],
        ["Visit example.org or v1.2.3 now.", "Thanks!"],
        ["What?!", "No!!!", "Oh."],
        ["Acme Inc. Boston made it.", "Then came Acme Inc.", "The firm failed."],
        ["¿Qué?", "¡No!", "Sí."],
        ["He said so [1].", "(She did not.)", "– Never?"],
        ["Aristotle (c. 384 BC) lived.", "So did we."],
    ],
    ids=lambda expected: expected[0],
)
def test_examples(expected: list[str]) -> None:
    assert cut(" ".join(expected)) == expected


def test_full_stops_of_other_scripts_need_no_white_space() -> None:
    assert cut("今日は。元気？「行く。」はい！") == ["今日は。", "元気？", "「行く。」", "はい！"]  # noqa: RUF001
    assert cut("यह है। वह है।") == ["यह है।", "वह है।"]


def test_a_line_break_ends_a_sentence() -> None:
    assert cut("A title\n\nthe text goes on \n") == ["A title", "the text goes on"]


def test_nothing_is_no_sentence() -> None:
    assert cut("") == cut(" \n\t ") == []


@given(st.text(alphabet="aB. !?\n\"'()1…。", max_size=60))
def test_sentences_hold_all_but_white_space(text: str) -> None:
    found = sentences(text)
    edges = [edge for span in found for edge in span]
    assert edges == sorted(edges)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in found)
    between = [text[end:start] for end, start in zip([0, *edges[1::2]], [*edges[::2], len(text)], strict=True)]
    assert not "".join(between).strip()


@pytest.mark.parametrize("sample", [".", "a.", ". ", '."', "A. ", " ", "x", ".\n"])
def test_linear_time(sample: str) -> None:
    """Four times the text takes about four times as long; a quadratic rule would take sixteen times."""

    def seconds(size: int) -> float:
        text = sample * (size // len(sample))
        best = float("inf")
        for _ in range(3):
            begin = time.perf_counter()
            sentences(text)
            best = min(best, time.perf_counter() - begin)
        return best

    assert seconds(200_000) < 9 * seconds(50_000) + 0.02
