"""Words as a head reads them: token ids of bounded length, and which token answers for which word.

A label belongs to the first token of its word; a classifier's label to the whole text. Refuses to cut in silence: what
was cut, and what is nothing to the tokenizer, says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from besag.arrays import Bools, Ints
from besag.results.status import Status
from besag.vocabulary import Vocabulary


class Read(NamedTuple):
    """One example."""

    ids: Ints  # (L,)
    special: Bools  # (L,)
    first: Ints  # (words,) the first token of each word; −1 where it was cut off, or is nothing to the tokenizer
    cut: bool
    status: Status = Status.OK


def read(vocabulary: Vocabulary, words: Sequence[Sequence[str]], most: int | None) -> list[Read]:
    """Each list of words, spaces between, in at most so many tokens: the last ones of the text go."""
    found = []
    for own, one in zip(words, vocabulary.encode([" ".join(own) for own in words], lenient=True), strict=True):
        if one.special.all():
            status = Status.EMPTY if one.decodable else Status.UNDECODABLE
            found.append(Read(one.ids, one.special, np.full(len(own), -1), False, status))
            continue
        inner = np.flatnonzero(~one.special)
        gone = inner[max(len(inner) - max(len(one.ids) - (most or len(one.ids)), 0), 0) :]
        keep = np.ones(len(one.ids), bool)
        keep[gone] = False
        ends = np.cumsum([len(word) + 1 for word in own])  # a word and the space after it
        offsets, special = one.offsets[keep], one.special[keep]
        visible = np.flatnonzero(~special & (offsets[:, 0] < offsets[:, 1]))
        word = np.searchsorted(ends, offsets[visible, 0], side="right")
        first = np.full(len(own), -1)
        first[word[::-1]] = visible[::-1]  # the first is written last
        found.append(Read(one.ids[keep], special, first, bool(len(gone))))
    return found


class Batch(NamedTuple):
    ids: Tensor  # (N, L) padded on the right
    mask: Tensor  # (N, L) 1 where there is a token

    @classmethod
    def of(cls, ids: Sequence[Ints], pad: int, device: torch.device) -> Batch:
        longest = max(map(len, ids))
        table = np.full((len(ids), longest), pad)
        mask = np.zeros((len(ids), longest), np.int64)
        for row, one in enumerate(ids):
            table[row, : len(one)], mask[row, : len(one)] = one, 1
        return cls(torch.from_numpy(table).to(device), torch.from_numpy(mask).to(device))
