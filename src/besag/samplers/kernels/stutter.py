"""Stutter: a word said twice in a row, the mark that parallel decoding leaves.

    p = ½ "was walking along" + ½ "was quietly walking"
    second place: ½ walking, ½ quietly        third place: ½ along, ½ walking
    drawn independently:  ¼ "walking along"  ¼ "walking walking"  ¼ "quietly along"  ¼ "quietly walking"

Where it is open by how much a text is shifted, every place is right by itself and their product is not: a quarter says
the word twice, and a quarter says it nowhere. The omission cannot be seen in a text. The repetition can.

    by_word      the share of words that repeat the word before, of those with nothing but white space between them; a
                 word is a run of letters with apostrophes inside, compared without regard to case

Real text repeats tokens, nearly all of them digits and signs ("1900", "((", "..."), so the rate of tokens, or of words
and signs together (`besag.diagnostics.texts.stutter`), has a floor that is no fault of a decoder. Words it hardly ever
repeats ("had had", "that that"). Rates are to be held against those of real text of the same kind.

`repeated` says where in the sequences of a chain a token is the same as the one before; decoders hide such places anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from besag.diagnostics.grams import Rate, ratio

WORD = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
NEIGHBOURS = re.compile(rf"(?<![\w'’])({WORD})(?=\s+({WORD})(?![\w'’]))")  # ahead, so that the second may be a first


def by_word(texts: Iterable[str]) -> Rate:
    """
    >>> by_word(["The dog was walking walking along the road.", "No, no!"]).value  # one of the seven pairs of words
    0.14285714285714285
    """
    counts = np.array([count(text) for text in texts], dtype=np.float64).reshape(-1, 2)
    return ratio(counts[:, 0], counts[:, 1])


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
