"""Terms stand where they are likeliest, by brute force over all ways; nothing moves them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.translation import pairs

import besag
from besag.errors import BesagError
from besag.translation.terms import best_places, read_terms


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 3))
def test_the_places_are_the_best_of_all(seed: int, sizes: list[int], more: int) -> None:
    count, draw = sum(sizes) + more, np.random.default_rng(seed)
    tables = [np.log(draw.random((count, size))) for size in sizes]

    def worth(starts: tuple[int, ...]) -> float:
        taken = [start + j for start, size in zip(starts, sizes, strict=True) for j in range(size)]
        if len(set(taken)) < len(taken) or max(taken) >= count:
            return -np.inf
        return sum(
            table[start + j, j] for table, start, size in zip(tables, starts, sizes, strict=True) for j in range(size)
        )

    best = max(worth(starts) for starts in product(range(count), repeat=len(sizes)))
    assert worth(tuple(best_places(tables))) == pytest.approx(best)


def test_on_a_table_the_rest_follows_the_term() -> None:
    """b stands where it is likelier, and what is beside it is the likeliest given b."""
    law = besag.GivenTable({"x": [[0.5, 0.02, 0.1], [0.1, 0.0, 0.2], [0.04, 0.02, 0.02]]}, symbols=["a", "b", "c"])
    lm = besag.load(law)
    assert lm.translate("x", length=2).texts == ["a a"]
    [row] = lm.translate(["x"], length=2, terms=[["b"]])
    assert (row.text, row.passes, row.missing) == ("b c", 2, ())  # p(b first) = 0.3, p(b second) = 0.04


def test_a_translator_says_its_terms(masked: Any) -> None:
    sources = ["the cat", "table dogs night", "cat"]
    found = masked.translate(sources, terms=[["man"], [], ["sleep", "mat"]], passes=2)
    assert "man" in found.texts[0].split()
    assert found.texts[1] == pairs.translated(sources[1])
    assert {"sleep", "mat"} <= {*found.texts[2].split()}
    assert all(not row.missing for row in found)


def test_what_is_refused(masked: Any) -> None:
    for terms, told in (
        ([["man"]], "2 sources and 1 lists"),
        ([["man"], [""]], "a term is a text"),
        ([["[MASK]"], []], "mask token"),
        ([["☃"], []], "unknown to the tokenizer"),
        ([["man"] * 9, []], "at most 8"),
        ([["the cat sleeps on the mat", "dogs on the table"], []], "writes targets of 10 at most"),
    ):
        with pytest.raises(BesagError, match=told):
            masked.translate(["the cat", "cat"], terms=terms)
    assert read_terms(masked.vocabulary, []) == ()
