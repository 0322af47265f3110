"""Where words and tokens stand: all texts of a batch written under one another, and spans of their characters.

Knows characters and arrays of numbers, and no tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from besag.errors import BesagError, quoted

SPACE = np.array([chr(code).isspace() for code in range(0x3001)] + [False])  # U+3000 is the last white space there is


class Page:
    """All texts of a batch written under one another, so that one number says where a character stands."""

    def __init__(self, texts: list[str]) -> None:
        self.base = np.cumsum([0, *(len(text) + 1 for text in texts)])[:-1]  # (B,) where each text begins
        try:
            codes = np.frombuffer("\n".join([*texts, ""]).encode("utf-32-le"), dtype="<u4")  # (C,)
        except UnicodeEncodeError as failure:
            text = texts[np.searchsorted(self.base, failure.start, side="right") - 1]
            raise BesagError(
                f"{quoted(text)} holds half of a surrogate pair, which is no character: decode it anew."
            ) from None
        self.space = SPACE[np.minimum(codes, len(SPACE) - 1)]  # (C,)
        position = np.arange(len(self.space) + 1)
        blank = np.append(self.space, False)
        # (C + 1,) from each place, the first letter at or after it, and the end of the last letter before it
        self.following = np.minimum.accumulate(np.where(blank, len(self.space), position)[::-1])[::-1]
        self.preceding = np.maximum.accumulate(np.append(0, np.where(self.space, 0, position[1:])))

    @property
    def runs(self) -> np.ndarray:  # (W, 2)
        """The maximal runs of characters that are not white space."""
        return np.flatnonzero(np.diff(self.space.astype(np.int8), prepend=1, append=1)).reshape(-1, 2)

    def place(self, spans: list[list[tuple[int, int]]], before: list[int]) -> np.ndarray:  # (W, 2)
        """Where the spans of each scored text stand in the page; `before` characters of prefix come first."""
        shift = np.repeat(self.base + before, [len(line) for line in spans])
        return flat(chain.from_iterable(spans)).reshape(-1, 2) + shift[:, None]

    def trim(self, row: np.ndarray, offsets: np.ndarray, tokens: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Where each token starts and ends in the page, without white space; a blank token is empty, at its end."""
        start, end = (offsets + self.base[row][:, None]).T  # (T,), (T,)
        start = np.minimum(self.following[start], end)
        end = np.maximum(self.preceding[end], start)
        # a tokenizer that begins each word with a space of its own gives that space the first letter's offsets
        doubled = np.flatnonzero((start[:-1] == start[1:]) & (row[:-1] == row[1:]) & (end[:-1] > start[:-1]))
        invented = [index for index in doubled.tolist() if not tokens[index].strip("▁Ġ")]
        end[invented] = start[invented]
        return start, end


def flat(lines: Iterable[Iterable[int]]) -> np.ndarray:
    return np.fromiter(chain.from_iterable(lines), dtype=np.int64)


def scored_tokens(page: Page, spans: np.ndarray, row: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(T,) Does a token share a character other than white space with the span (B, 2) of its text?

    A token of nothing but white space is scored when it ends in the span or where the span begins: the space before the
    first scored word belongs to that word. A span of nothing but white space has no places.
    """
    first, last = (spans + page.base[:, None]).T  # (B,), (B,)
    low, high = page.following[first], page.preceding[last]  # the same without white space around
    overlaps = (start < high[row]) & (end > low[row])  # both are trimmed: what they share begins with a letter
    blank = (start == end) & (start >= first[row]) & (start <= last[row])
    scored: np.ndarray = (overlaps | blank) & (low < high)[row]
    return scored


def first_overlap(start: np.ndarray, end: np.ndarray, spans: np.ndarray) -> np.ndarray:  # (T,)
    """The first span, in order, that holds a character of each token (the place of an empty one), or nan."""
    index = np.searchsorted(spans[:, 1], start, side="right")
    begins = np.append(spans[:, 0], np.iinfo(np.int64).max)[index]
    return np.where(begins < np.maximum(end, start + 1), index, np.nan)


def in_order(spans: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """The spans as they are, if each begins where the one before has ended or later, and lies within the text."""
    last = 0
    for span in spans:
        start, end = _two_numbers(span)
        if not last <= start <= end <= len(text):
            raise BesagError(f"{quoted(span)} is no (start, end) within {quoted(text)} after character {last}.")
        last = end
    return list(spans)


def tokens_of(offsets: np.ndarray, spans: Sequence[tuple[int, int]], tiling: bool) -> list[list[int]]:
    """Which tokens belong to each span, for tokens at `offsets` (n, 2) and spans in order: each token to one at most.

    A token belongs to the first span that holds one of its characters, so that no token counts twice where two spans
    share it. `tiling` spans are all there is of the text: white space before a span is part of it, and every token
    belongs to one; so the sums over spans add up to the sum over tokens.
    """
    start, end = offsets.T  # (n,), (n,)
    if tiling:
        which = np.searchsorted([last for _, last in spans[:-1]], start, side="right").astype(np.float64)
    else:
        which = first_overlap(start, end, np.array(spans, np.int64).reshape(-1, 2))
    return [np.flatnonzero(which == index).tolist() for index in range(len(spans))]


def word_numbers(row: np.ndarray, key: np.ndarray, special: np.ndarray) -> np.ndarray:  # (T,)
    """Word numbers from 0 in each row, one more whenever the key changes (nan is never the same); -1 where special."""
    inner = np.flatnonzero(~special)
    row, key = row[inner], key[inner]
    number = np.cumsum(np.append(False, (key[1:] != key[:-1]) | (row[1:] != row[:-1])))[: len(inner)]
    words = np.full(len(special), -1, dtype=np.int64)
    words[inner] = number - number[np.searchsorted(row, row)]
    return words


def given_spans(words: Any, texts: list[str]) -> list[list[tuple[int, int]]]:
    """The spans of the words somebody gives for each text."""
    lists = isinstance(words, Sequence) and all(isinstance(x, Iterable) and not isinstance(x, str) for x in words)
    if not lists or len(words) != len(texts):
        raise BesagError(f"expected one list of words for each of the {len(texts)} texts, got {quoted(words)}.")
    result = []
    for text, entry in zip(texts, words, strict=True):
        spans: list[tuple[int, int]] = []
        cursor = 0
        for word in entry:
            if isinstance(word, str):
                start = text.find(word, cursor) if word.strip() else -1
                if start < 0:
                    rest = quoted(text[cursor:])
                    raise BesagError(f"the word {quoted(word)} does not follow in {rest}, the rest of {quoted(text)}.")
                cursor = start + len(word)
            else:
                start, end = _two_numbers(word)
                if not cursor <= start < end <= len(text):
                    raise BesagError(
                        f"{quoted(word)} is no (start, end) within {quoted(text)} after character {cursor}."
                    )
                cursor = end
            spans.append((start, cursor))
        result.append(spans)
    return result


def _two_numbers(span: Any) -> tuple[int, int]:
    """(start, end), or (−1, −1) of what is none."""
    numbers = span if isinstance(span, Iterable) else ()
    start, end = (*(int(at) for at in numbers if isinstance(at, int | np.integer)), -1, -1)[:2]
    return start, end
