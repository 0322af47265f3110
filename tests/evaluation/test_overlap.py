"""Overlap of training and evaluation text, against plain search for runs of words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.evaluation import overlap as module
from besag.evaluation.overlap import _Hasher, _runs, overlap, words

TEXT = st.lists(st.sampled_from("abcd"), max_size=14).map(" ".join)


def brute(corpus: list[str], texts: list[str], length: int) -> dict[int, int]:
    """Text → how many of its runs stand in a document."""
    seen = {}
    documents = [f" {' '.join(words(document))} " for document in corpus]
    for index, text in enumerate(texts):
        split = words(text)
        size = min(length, len(split))
        if len(split) >= module.SHORTEST:
            runs = [" ".join(split[start : start + size]) for start in range(len(split) - size + 1)]
            hits = sum(any(f" {run} " in document for document in documents) for run in runs)
            if hits:
                seen[index] = hits
    return seen


@given(st.lists(TEXT, max_size=6), st.lists(TEXT, max_size=6), st.integers(4, 9))
def test_it_finds_what_a_plain_search_finds(corpus: list[str], texts: list[str], length: int) -> None:
    found = overlap(corpus, texts, length=length)
    assert {one.place: one.runs for one in found.seen} == brute(corpus, texts, length)
    assert found.texts + found.skipped == len(texts)
    assert found.words == sum(len(words(document)) for document in corpus)
    for one in found.seen:
        assert f" {one.run} " in f" {' '.join(words(one.text))} "
        number = int(one.where.removeprefix("document ")) - 1
        assert brute([corpus[number]], [one.text], length)


def test_blocks_do_not_lose_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    corpus = [" ".join(generator.choice(list("abcdefgh"), 30)) for _ in range(40)]
    texts = [" ".join(corpus[place].split()[3:15]) for place in range(0, 40, 7)] + [corpus[0][-8:] + corpus[1][:7]]
    whole = overlap(corpus, texts)
    for block in (1, 31, 100):
        monkeypatch.setattr(module, "BLOCK", block)
        assert overlap(corpus, texts).table() == whole.table()
    assert [one.place for one in whole.seen][:6] == list(range(6))


def test_case_and_punctuation_do_not_matter_and_documents_do() -> None:
    texts = ["The cat's mat, here!", "It rains here now."]
    assert len(overlap(["so “the cat’s\nMAT” (here) it"], texts).seen) == 1
    assert not overlap(["the cat's mat", "here it rains here", "now"], texts).seen
    assert not overlap(["the scat's mat here", "the cat's mate here"], texts).seen


def test_long_texts_are_seen_by_a_run_and_short_ones_whole() -> None:
    long = " ".join(f"w{number}" for number in range(20))
    run = " ".join(f"w{number}" for number in range(4, 16))
    found = overlap([(f"x {run} y", "corpus.txt, line 3")], [long, "w4 w5 w6 w7", "w4 w5 w9 w10", "w4 w5"])
    assert [(one.place, one.run, one.runs, one.of) for one in found.seen] == [
        (0, run, 1, 9),
        (1, "w4 w5 w6 w7", 1, 1),
    ]
    assert found.seen[0].where == "corpus.txt, line 3"
    assert (found.texts, found.skipped) == (3, 1)
    assert found.share == pytest.approx(2 / 3)
    assert not overlap([run.replace("w9", "other")], [long]).seen


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(1, 13))
def test_hashes_of_runs_are_equal_where_the_runs_are(symbols: list[int], length: int) -> None:
    hashes = _runs(_Hasher()([str(one) for one in symbols]), length)
    runs = [tuple(symbols[start : start + length]) for start in range(len(symbols) - length + 1)]
    assert len(hashes) == len(runs)
    for a, one in zip(hashes, runs, strict=True):
        for b, two in zip(hashes, runs, strict=True):
            assert (a == b) == (one == two)


def test_out_of_here() -> None:
    found = overlap(["one two three four five"], ["Two three four five", "six seven eight nine"])
    assert "1 of 2 texts seen (50.00 %)" in repr(found)
    assert found.to_pandas()["text"].tolist() == ["Two three four five"]
    assert found.to_dict()["seen"][0]["run"] == "two three four five"


def test_wrong_input_is_refused() -> None:
    with pytest.raises(BesagError, match="length=2"):
        overlap([], [], length=2)
    with pytest.raises(BesagError, match="texts='a b c d': give a list of texts"):
        overlap(["a"], "a b c d")
    with pytest.raises(BesagError, match=r"texts\[0\]=3: give a text"):
        overlap(["a"], [3])  # type: ignore[list-item]
