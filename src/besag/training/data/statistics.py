"""What a law of masks may know of a corpus, from texts in memory: for collators outside of a run of this package.

A run counts its cache instead (`Cache.statistics`). Knows texts, token ids and how to count them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Ints
from besag.errors import BesagError, quoted
from besag.masks.law import Statistics
from besag.training.data.rows import Document
from besag.training.data.tokens import dtype_of, tokenised, width
from besag.vocabulary import Vocabulary


def masking_statistics(texts: Iterable[str | Sequence[int]], tokenizer: Any) -> Statistics:
    """What laws of masks that look at the tokens (`pmi`, `frequency`, `adaptive` …) need to know of the corpus.

    Args:
        texts: the corpus, any iterable: texts, or their token ids (special tokens are left out). All of its token ids
            are kept in memory, two or four bytes each.
        tokenizer: of transformers, the one that the collator has.

    Returns:
        A `Statistics`, for `MaskingCollator(..., statistics=)` and for `law.prepare`.

    Examples:
        >>> tokenizer = besag.train_tokenizer(["the cat sleeps, the cats sleep. "] * 9, size=36, byte_fallback=False)
        >>> statistics = besag.masking_statistics(["the cat sleeps", "the cats"], tokenizer)
        >>> dict(zip(statistics.tokens, statistics.counts.tolist()))["▁the"]
        2
        >>> collator = besag.MaskingCollator(tokenizer, "frequency", statistics=statistics)
    """
    if not hasattr(tokenizer, "all_special_ids"):
        raise BesagError(f"tokenizer={quoted(tokenizer)}: give a tokenizer of transformers")
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise BesagError(f"texts={quoted(texts)}: give many of them, a list or any iterable")
    vocabulary = Vocabulary(tokenizer)
    size, kind = width(vocabulary), dtype_of(vocabulary)
    documents: list[NDArray[Any]] = []
    counts = np.zeros(size, np.int64)
    for ids in _ids(texts, vocabulary, size):
        documents.append(ids.astype(kind))
        counts += np.bincount(ids, minlength=size)
    if not counts.any():
        raise BesagError("texts: there is not one token in them to count")
    return Statistics(
        counts, _Documents(documents), vocabulary.special_ids, tuple(vocabulary.token(id) for id in range(size))
    )


def _ids(texts: Iterable[str | Sequence[int]], vocabulary: Vocabulary, size: int) -> Iterator[Ints]:
    """The ids of each text, in groups that are tokenised together; ids that are given stand for their text."""
    special = np.array(sorted(vocabulary.special_ids), np.int64)
    waiting: list[Document] = []
    for number, text in enumerate(texts, 1):
        if isinstance(text, str):
            waiting.append(Document(text, None, f"text {number}"))
            if len(waiting) == 1024:
                yield from _tokenised(waiting, vocabulary)
                waiting = []
            continue
        try:
            given = np.asarray(text)
        except (ValueError, TypeError):
            given = np.zeros((1, 1))
        if given.ndim != 1 or (len(given) and not np.issubdtype(given.dtype, np.integer)):
            raise BesagError(f"text {number} is {quoted(text)}: give a text, or its token ids")
        ids = given.astype(np.int64)
        if len(ids) and not (ids.min() >= 0 and ids.max() < size):
            raise BesagError(f"text {number} has the token id {ids[(ids < 0) | (ids >= size)][0]}: there are {size}")
        yield ids[~np.isin(ids, special)]
    yield from _tokenised(waiting, vocabulary)


def _tokenised(documents: list[Document], vocabulary: Vocabulary) -> Iterator[Ints]:
    for group in tokenised(documents, vocabulary, processes=1):
        for low, high in pairwise(group.documents.tolist()):
            yield group.tokens[low:high].astype(np.int64)


class _Documents:
    """The ids of each document, as often as they are asked for."""

    def __init__(self, documents: list[NDArray[Any]]) -> None:
        self.documents = documents

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[Ints]:
        return (ids.astype(np.int64) for ids in self.documents)
