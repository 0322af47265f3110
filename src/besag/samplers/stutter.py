"""Stutter: a word said twice in a row, the mark that parallel decoding leaves.

    p = ½ "was walking along" + ½ "was quietly walking"
    second place: ½ walking, ½ quietly        third place: ½ along, ½ walking
    drawn independently:  ¼ "walking along"  ¼ "walking walking"  ¼ "quietly along"  ¼ "quietly walking"

Where it is open by how much a text is shifted, every place is right by itself and their product is not: a quarter says
the word twice, and a quarter says it nowhere. The omission cannot be seen in a text. The repetition can.

    by_token     the share of tokens, of those with a left neighbour, that are equal to it
    by_word      the same for words, of those with nothing but white space between them and the word before; a word is a
                 run of letters with apostrophes inside, compared without regard to case

Real text repeats tokens too, nearly all of them digits and signs ("1900", "((", "..."), so the rate of tokens has a
floor that is no fault of a decoder. Words it hardly ever repeats ("had had", "that that"). Both rates are to be held
against those of real text of the same kind. `besag.diagnostics.texts` has the rate of words and signs together.

`repeated` says where in the sequences of a chain a token is the same as the one before; decoders hide such places anew.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from besag.diagnostics.texts import Rate, ratio

WORD = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
NEIGHBOURS = re.compile(rf"(?<![\w'’])({WORD})(?=\s+({WORD})(?![\w'’]))")  # ahead, so that the second may be a first


def by_token(sequences: Iterable[Sequence[Hashable]]) -> Rate:
    """Of sequences of tokens, whatever they are; the standard error takes sequences as independent."""
    counts = [(sum(a == b for a, b in pairwise(one)), max(len(one) - 1, 0)) for one in sequences]
    return _rate(counts)


def by_word(texts: Iterable[str]) -> Rate:
    """
    >>> by_word(["The dog was walking walking along the road.", "No, no!"]).value  # one of the seven pairs of words
    0.14285714285714285
    """
    return _rate([count(text) for text in texts])


def count(text: str) -> tuple[int, int]:
    """How many words repeat the one before, and how many have one before."""
    pairs = [(found[1], found[2]) for found in NEIGHBOURS.finditer(text)]
    return sum(first.casefold() == second.casefold() for first, second in pairs), len(pairs)


def repeated(ids: Tensor, free: Tensor) -> Tensor:
    """(C, L) the free places whose token is the same as that of the place before, from ids (C, L) and free (C, L).

    The place before may be clamped. Hidden places all hold the mask and so repeat one another: take them out.
    """
    same = torch.zeros_like(free)
    same[:, 1:] = ids[:, 1:] == ids[:, :-1]
    return same & free


def _rate(counts: list[tuple[int, int]]) -> Rate:
    above, below = (np.array([one[at] for one in counts], dtype=np.float64) for at in (0, 1))
    return ratio(above, below)
