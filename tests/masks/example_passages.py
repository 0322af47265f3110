"""Passages for the tests of laws, made up or of a text, and what a law may know of a corpus."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from besag.masks import Passages, Statistics
from besag.vocabulary import Vocabulary

SIZE, SPECIAL = 60, 3  # of the vocabulary; its first ids are special tokens


def ragged(lengths, seed=0, *, joined=0.3, inside=0.2, specials=True, draw=None) -> Passages:
    """Passages of random tokens, with special ones at both ends; words of some tokens, and spans of up to three."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(lengths)), lengths)
    ids = SPECIAL + (rng.zipf(1.5, len(row)) - 1) % (SIZE - SPECIAL)
    free = np.ones(len(row), bool)
    if specials:
        edge = np.append(True, row[1:] != row[:-1])[: len(row)]
        free &= ~edge & ~np.append(edge[1:], True)[: len(row)]
        free &= rng.random(len(row)) > 0.03  # and a separator here and there
        ids[~free] = 1
    word, span = np.full(len(row), -1), np.full(len(row), -1)
    for passage in range(len(lengths)):
        number, spans, left = -1, 0, 0
        for at in np.flatnonzero(row == passage):
            if not free[at]:
                left = 0
                continue
            if number < 0 or rng.random() > joined or not free[at - 1]:
                number += 1
            word[at] = number
            if not left and rng.random() < inside:
                spans, left = spans + 1, int(rng.integers(1, 4))
            if left:
                span[at], left = spans - 1, left - 1
    return Passages(ids, row, free, word, span, np.arange(len(lengths)) if draw is None else np.asarray(draw))


@st.composite
def drawn(draw) -> Passages:
    """Any passages, short or empty ones among them."""
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=5))
    counters = draw(st.lists(st.integers(0, 2**32 - 1), min_size=len(lengths), max_size=len(lengths)))
    joined, inside = draw(st.sampled_from([(0.0, 0.0), (0.4, 0.2), (0.9, 0.9)]))
    return ragged(lengths, draw(st.integers(0, 10**6)), joined=joined, inside=inside, draw=counters)


def alone(passages: Passages, number: int) -> Passages:
    """One of the passages, with nothing beside it."""
    at = passages.row == number
    ids, _, free, word, span, draw, tag, _ = passages
    own = tag[at] if len(tag) else tag
    return Passages(ids[at], np.zeros(at.sum(), int), free[at], word[at], span[at], draw[[number]], own)


def repeated(passages: Passages, times: int) -> Passages:
    """One passage many times, each with a draw of its own."""
    assert len(passages.draw) == 1
    several = Passages(*(np.tile(part, times) for part in passages))
    return several._replace(row=np.repeat(np.arange(times), len(passages.row)), draw=np.arange(times))


def of_texts(vocabulary: Vocabulary, texts) -> Passages:
    encoded = vocabulary.encode(texts)
    row = np.repeat(np.arange(len(encoded)), [len(text.ids) for text in encoded])
    ids, special, word = (
        np.concatenate([getattr(text, name) for text in encoded]) for name in ("ids", "special", "words")
    )
    return Passages(ids, row, ~special, word, np.full(len(row), -1), np.arange(len(encoded)))


def plain(length: int) -> Passages:
    """One passage of `length` free tokens, each a word."""
    zeros = np.zeros(length, int)
    return Passages(zeros + SPECIAL, zeros, zeros == 0, np.arange(length), zeros - 1, np.zeros(1, int))


def statistics() -> Statistics:
    corpus = ragged([200] * 30, seed=5, specials=False)
    return Statistics(
        counts=np.bincount(corpus.ids, minlength=SIZE),
        documents=[corpus.ids[corpus.row == number] for number in range(30)],
        special=frozenset(range(SPECIAL)),
        tokens=tuple(["[PAD]", "[SEP]", "[MASK]"] + [f"{'##' * (id % 3 == 0)}t{id}" for id in range(SPECIAL, SIZE)]),
    )
