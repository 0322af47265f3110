"""Collocations hidden whole (PMI masking; Levine et al. 2021), so that no half of "new york" gives the other away.

Units are the matches of a PMI vocabulary (`pmi_vocabulary.py`) in the passage, and single words (or tokens) elsewhere;
each unit has the same chance. Of two matches one inside the other the longer wins; where two overlap, either wins with
equal chance, and what is left of the other is matched anew.

The vocabulary is a file that was saved, or is built from the corpus. With unit="word" a match begins and ends where
words of the passage do, so no word is ever split. The law looks at the tokens, but gives each the same chance: what it
tells the network is that a run of hidden places is one collocation, and no table π(v) can take that out. So `tilt` is
None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.masks.counting import find
from besag.masks.law import LAWS, MaskLaw, Statistics
from besag.masks.passages import Passages
from besag.masks.pmi_vocabulary import SHARES, Collocations, Unit, build_pmi_vocabulary
from besag.masks.tables import carrying, needed, refuse_unless
from besag.masks.units import budget, take, uniform_turns
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class PMI(MaskLaw):
    name: ClassVar[str] = "pmi"
    title: ClassVar[str] = "collocations, hidden whole (PMI masking)"
    cite: ClassVar[tuple[str, ...]] = ("levine2021",)
    _trie: ClassVar[Trie | None] = None

    vocabulary: Annotated[str | None, "a file of collocations; if none, built from the corpus"] = None
    size: Annotated[int, "collocations that are kept"] = 800_000
    min_count: Annotated[int, "least count of a collocation"] = 10
    longest: Annotated[int, "units of the longest collocation"] = 5
    squared: Annotated[bool, "weigh by squared PMI"] = False
    unit: Annotated[Unit, "what collocations are made of"] = "word"

    def __post_init__(self) -> None:
        refuse_unless(self.unit in ("word", "token"), self, "unit", "'word' or 'token'")
        refuse_unless(self.longest in SHARES, self, "longest", "2 to 5")

    def prepare(self, statistics: Statistics) -> Self:
        if self.vocabulary is not None:
            found = Collocations.load(self.vocabulary, statistics.tokens)
        else:
            found = build_pmi_vocabulary(
                statistics, unit=self.unit, size=self.size, min_count=self.min_count, longest=self.longest,
                squared=self.squared,
            )  # fmt: skip
        return self.knowing(found, len(statistics.counts))

    def knowing(self, collocations: Collocations, width: int) -> Self:
        """The law with a vocabulary at hand, over `width` token ids."""
        return carrying(self, _trie=Trie(collocations.ids, width))

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        turn = uniform_turns(passages, seed, Training.PMI_TURN)
        return take(passages, self.units(passages, seed), turn, budget(passages, rate, seed))

    def units(self, passages: Passages, seed: int) -> Ints:
        """(T,) the first token of the unit that each token belongs to; −1 where it may not be hidden."""
        trie = needed(self._trie, self)
        place = np.arange(len(passages.ids))
        if self.unit == "word":
            fresh = (passages.word != np.roll(passages.word, 1)) | (passages.row != np.roll(passages.row, 1))
            fresh[:1] = True
        else:
            fresh = np.ones(len(place), dtype=np.bool_)
        unit = np.where(passages.free, np.maximum.accumulate(np.where(fresh, place, 0)), -1)
        height = uniform_turns(passages, seed, Training.PMI_OVERLAP)
        able = passages.free.copy()
        while True:
            start, length = trie.match(passages.ids, passages.row, able, fresh)
            if not len(start):
                return unit
            ends = start + length
            outer = ends > np.append(0, np.maximum.accumulate(ends)[:-1])  # inside no match that begins before it
            start, length = start[outer], length[outer]
            edge = np.cumsum(length) - length
            covered = np.repeat(start - edge, length) + np.arange(int(length.sum()))
            lowest = np.full(len(place), np.inf)
            np.minimum.at(lowest, covered, np.repeat(height[start], length))
            wins = np.logical_and.reduceat(lowest[covered] == np.repeat(height[start], length), edge)
            taken = covered[np.repeat(wins, length)]
            unit[taken] = np.repeat(start, length)[np.repeat(wins, length)]
            able[taken] = False


class Trie:
    """Sequences of ids, each node known by its parent and its id: key = parent · V + id. The roots are the ids."""

    def __init__(self, sequences: Ints, width: int) -> None:  # (N, L), −1 after the end
        self.width = width
        self.depth = sequences.shape[1]
        node = sequences[:, 0].copy()
        keys, ends, nodes = [], [np.empty(0, dtype=np.int64)], width
        alive = np.arange(len(sequences))
        for at in range(1, self.depth):
            more = sequences[alive, at] >= 0
            ends.append(node[alive[~more]])
            alive = alive[more]
            found, member = np.unique(node[alive] * width + sequences[alive, at], return_inverse=True)
            node[alive] = nodes + member
            nodes += len(found)
            keys.append(found)
        ends.append(node[alive])
        whole = np.concatenate(keys) if keys else np.empty(0, dtype=np.int64)
        order = np.argsort(whole, kind="stable")
        self.keys, self.child = whole[order], order + width
        self.ends = np.zeros(nodes, dtype=np.bool_)
        self.ends[np.concatenate(ends)] = True
        self.ends[:width] = False  # one token alone is no collocation

    def match(self, ids: Ints, row: Ints, able: Bools, fresh: Bools) -> tuple[Ints, Ints]:
        """Where a sequence begins and how long the longest one there is, in able tokens of one passage.

        A sequence begins where `fresh` is true, and ends before such a place or a token of another passage.
        """
        total = len(ids)
        longest = np.zeros(total, dtype=np.int64)
        start = np.flatnonzero(able & fresh)
        node = ids[start]
        for at in range(1, self.depth):
            inside = start + at < total
            start, node = start[inside], node[inside]
            follows = able[start + at] & (row[start + at] == row[start])
            start, node = start[follows], node[follows]
            found = find(self.keys, node * self.width + ids[start + at])
            start, node = start[found >= 0], self.child[found[found >= 0]]
            after = np.minimum(start + at + 1, total - 1)
            closed = (start + at + 1 == total) | fresh[after] | (row[after] != row[start])
            done = self.ends[node] & closed
            longest[start[done]] = at + 1
        matched = np.flatnonzero(longest)
        return matched, longest[matched]
