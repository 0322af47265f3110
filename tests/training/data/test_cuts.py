from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.training.data import cuts
from besag.training.data.tokens import SENTENCE

lengths = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=8), min_size=1, max_size=6)


def corpus(sizes: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Marks and document bounds for documents of sentences of these lengths."""
    flat = [size for document in sizes for size in document]
    marks = np.zeros(sum(flat), np.uint8)
    marks[np.cumsum([0, *flat[:-1]])] = SENTENCE
    return marks, np.cumsum([0, *map(sum, sizes)])


@given(lengths, st.integers(1, 15))
def test_pieces_tile_the_text_and_keep_short_sentences_whole(sizes: list[list[int]], room: int) -> None:
    marks, documents = corpus(sizes)
    bounds = cuts.pieces(marks, documents, room)
    expected, at = [0], 0
    for size in (size for document in sizes for size in document):
        count = -(-size // room)
        expected += [at + part * size // count for part in range(1, count + 1)]
        at += size
    assert bounds.tolist() == expected
    assert np.diff(bounds).max() <= room


@given(lengths, st.integers(1, 15))
def test_documents_are_cut_evenly(sizes: list[list[int]], room: int) -> None:
    _, documents = corpus(sizes)
    start, length = cuts.even(documents, room)
    assert np.array_equal(start[1:], start[:-1] + length[:-1])
    assert start[0] == 0
    assert start[-1] + length[-1] == documents[-1]
    assert set(documents[:-1]) <= set(start)
    for low, high in pairwise(documents):
        own = length[(start >= low) & (start < high)]
        assert len(own) == -(-(high - low) // room)
        assert own.max() - own.min() <= 1


@given(lengths, st.integers(1, 15))
def test_windows_are_full_and_stay_within_a_document(sizes: list[list[int]], room: int) -> None:
    _, documents = corpus(sizes)
    start, length = cuts.windows(documents, room)
    covered = np.zeros(documents[-1], int)
    for first, size in zip(start, length, strict=True):
        owner = np.searchsorted(documents, first, side="right") - 1
        whole = documents[owner + 1] - documents[owner]
        assert size == min(room, whole)
        assert first + size <= documents[owner + 1]
        covered[first : first + size] += 1
    assert covered.min() == 1
    assert len(start) == sum(-(-sum(document) // room) for document in sizes)


@given(lengths, st.integers(1, 15), st.randoms(use_true_random=False))
def test_segments_are_what_a_loop_would_cut(sizes: list[list[int]], room: int, random: object) -> None:
    marks, documents = corpus(sizes)
    bounds = cuts.pieces(marks, documents, room)
    target = np.array([random.randint(1, room) for _ in bounds[1:]])  # type: ignore[attr-defined]
    expected = []
    at = 0
    while at < len(bounds) - 1:
        end = at + 1
        while bounds[end] not in documents and bounds[end + 1] - bounds[at] <= target[at]:
            end += 1
        expected.append((bounds[at], bounds[end] - bounds[at]))
        at = end
    start, length = cuts.segments(bounds, documents, target)
    assert list(zip(start, length, strict=True)) == expected
    assert length.max() <= room


def test_targets_are_log_uniform() -> None:
    noise = (np.arange(100_000) + 0.5) / 100_000
    drawn = cuts.targets(noise, 128, 2) + 2
    assert drawn.min() == 8
    assert drawn.max() == 128
    for low, high in [(8, 16), (16, 32), (32, 64), (64, 128)]:
        share = np.mean((drawn >= low) & (drawn < high))
        assert share == pytest.approx(np.log(2) / np.log(129 / 8), abs=1e-3)
    assert set(cuts.targets(noise, 5, 2)) == {3}  # a longest passage below the shortest target is the only target
