"""What a law of masks may look at: token sequences one after the other, without padding.

T tokens in R passages. One layout for losses, samplers, bounds and the lab: a law never sees a padded batch, so padding
cannot change what it does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag.arrays import Bools, Ints

NO_TAGS: Ints = np.zeros(0, np.int64)
NONE: Bools = np.zeros(0, np.bool_)


class Passages(NamedTuple):
    ids: Ints  # (T,)
    row: Ints  # (T,) which passage: 0, 0, …, 1, 1, …, R−1
    free: Bools  # (T,) may be hidden: everything but special tokens
    word: Ints  # (T,) word number within its passage; −1 at special tokens
    span: Ints  # (T,) number, within its passage, of the given span (an entity, an error) it stands in; −1 in none
    draw: Ints  # (R,) the counter of each passage's noise: another draw, other masks, whatever stands beside it
    tag: Ints = NO_TAGS  # (T,) number of the tag given with the text (a part of speech in context), −1: none; or (0,)
    always: Bools = NONE  # (T,) free tokens that are hidden whatever the law says: a field whose turn it is; or (0,)

    def first(self, count: int) -> Passages:
        """The first so many passages."""
        keep = self.row < count
        of_tokens = {name: part[keep] for name, part in self._asdict().items() if name != "draw" and len(part)}
        return self._replace(**of_tokens, draw=self.draw[:count])

    @property
    def sizes(self) -> Ints:
        """(R,) how many tokens of each passage may be hidden."""
        return np.bincount(self.row[self.free], minlength=len(self.draw))

    @property
    def place(self) -> Ints:
        """(T,) position within its passage, special tokens counted."""
        first = np.searchsorted(self.row, np.arange(len(self.draw)))
        place: Ints = np.arange(len(self.row)) - first[self.row]
        return place
