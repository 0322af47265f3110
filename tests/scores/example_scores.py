"""Scores to try things on."""

import math

import numpy as np
from hypothesis import strategies as st

from besag.results.status import Status
from besag.scores.score import Score


def make(text="The cats sleep.", pieces=("The", "cat", "##s", "sleep", "."), words=None, log_probs=None, **fields):
    """A score whose tokens stand where their letters do."""
    offsets, at = [], 0
    for piece in pieces:
        letters = piece.removeprefix("##")
        start = text.index(letters, at) if letters != "▁" else at
        at = start + (len(letters) if letters != "▁" else 0)
        offsets.append((start, at))
    n = len(pieces)
    if words is None:
        words = np.cumsum([not piece.startswith("##") for piece in pieces]) - 1
    numbers = -np.arange(1.0, n + 1) if log_probs is None else np.asarray(log_probs, float)
    given_fields = {
        "text": text,
        "tokens": tuple(pieces),
        "ids": np.arange(n),
        "log_probs": numbers,
        "offsets": np.array(offsets, dtype=np.int64).reshape(n, 2),
        "words": np.asarray(words, dtype=np.int64),
        "method": "pll",
        "normalised": "",
        "base": math.e,
        "specials": "[CLS] … [SEP] shown, not scored",
        "word_policy": "tokenizer",
        "model": "tiny",
        "dtype": "float32",
    }
    return Score(**(given_fields | fields))


def unscored(status="empty", text=""):
    return make(text=text, pieces=(), status=Status(status))


@st.composite
def scores(draw):
    """A text of words cut into tokens at random, tokens of no width among them, with random numbers."""
    text, tokens, offsets, words = "", [], [], []
    for word in range(draw(st.integers(1, 5))):
        text += draw(st.sampled_from(["", " ", "  ", "\n"])) if word else ""
        if draw(st.booleans()):
            tokens, offsets, words = [*tokens, "▁"], [*offsets, (len(text), len(text))], [*words, word]
        for piece in draw(st.lists(st.sampled_from(["a", "bc", "日本", "é", "🦜"]), min_size=1, max_size=3)):
            tokens, words = [*tokens, piece], [*words, word]
            offsets.append((len(text), len(text) + len(piece)))
            text += piece
    if draw(st.booleans()):
        tokens, offsets, words = [*tokens, "▁"], [*offsets, (len(text), len(text))], [*words, word]
    numbers = draw(st.lists(st.floats(-50, 0), min_size=len(tokens), max_size=len(tokens)))
    extra = draw(st.dictionaries(st.sampled_from(["length", "mixture"]), st.floats(-10, 0)))
    return make(
        text=text,
        pieces=(),
        tokens=tuple(tokens),
        ids=np.arange(len(tokens)),
        offsets=np.array(offsets),
        words=np.array(words),
        log_probs=np.array(numbers),
        extra=extra,
    )
