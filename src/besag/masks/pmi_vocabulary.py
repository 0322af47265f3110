"""Collocations of a corpus: n-grams of words (or tokens) that occur together far more often than their parts would.

For an n-gram w, with p(s) = count(s) / N over the N units of the corpus (Levine et al. 2021):

    PMI_n(w) = min over segmentations σ of w into two or more parts of log [ p(w) / Π_{s ∈ σ} p(s) ].

The minimum asks that no way of cutting w into likely parts explains it. `squared` puts p(w)² in place of p(w), as the
released lists do: frequent n-grams gain. n-grams of 2 to 5 units seen more than `min_count` times are ranked for each
length by themselves, since their PMIs do not compare; half the vocabulary is pairs, a quarter triples, an eighth each
of four and five. Those with PMI_n ≤ 0 (not squared) are no collocations and are left out.

Memory is bounded. A frequent n-gram has frequent parts, so each length is counted in a pass of its own, and only where
both (n−1)-grams inside were frequent; the maximum over segmentations follows by the same recursion:
A(w) = max(log p(w), max_k A(w[:k]) + A(w[k:])) and PMI_n(w) = log p(w) − max_k (A(w[:k]) + A(w[k:])).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from besag.arrays import Floats, Ints
from besag.checks import checked
from besag.errors import BesagError, nearest
from besag.files.lines import lines_of
from besag.files.whole import whole
from besag.masks.corpus import Tokens, Words
from besag.masks.counting import CAPACITY, Counts, find
from besag.masks.law import Statistics

Unit = Literal["word", "token"]
SHARES = {2: 0.5, 3: 0.25, 4: 0.125, 5: 0.125}


@dataclass(frozen=True, eq=False)
class Collocations:
    """n-grams as token ids; of words, the ids of all their tokens."""

    ids: Ints  # (N, L), −1 after the end
    scores: Floats  # (N,)

    def __len__(self) -> int:
        return len(self.scores)

    def save(self, path: str | Path, tokens: tuple[str, ...]) -> None:
        """One n-gram a line: its tokens with spaces between them, a tab, its score."""
        with whole(path) as draft, open(draft, "w", encoding="utf-8", newline="\n") as file:
            for row, score in zip(self.ids.tolist(), self.scores.tolist(), strict=True):
                file.write(f"{' '.join(tokens[id] for id in row if id >= 0)}\t{score!r}\n")

    @classmethod
    def load(cls, path: str | Path, tokens: tuple[str, ...]) -> Collocations:
        ids = {token: id for id, token in enumerate(tokens)}
        rows: list[list[int]] = []
        scores: list[float] = []
        for number, line in lines_of(str(Path(path).expanduser())):
            words, tab, score = line.partition("\t")
            pieces = words.split(" ")
            for piece in pieces:
                if piece not in ids:
                    raise BesagError(
                        f"line {number} of {str(path)!r} has {piece!r}, which is no token of this vocabulary: "
                        f"an n-gram is tokens as the tokenizer writes them.{nearest(piece, ids)}"
                    )
            try:
                scores.append(float(score) if tab else 0.0)
            except ValueError:
                raise BesagError(f"line {number} of {str(path)!r} has the score {score!r}, no number") from None
            rows.append([ids[piece] for piece in pieces])
        return cls(_padded(rows), np.array(scores, dtype=np.float64))


class _Level(NamedTuple):
    """The frequent n-grams of one length, sorted by key = prefix · U + last unit."""

    keys: Ints
    prefix: Ints  # which (n−1)-gram its first n−1 units are
    suffix: Ints  # … and its last n−1
    counts: Ints


@checked
def build_pmi_vocabulary(
    statistics: Statistics,
    *,
    unit: Unit = "word",
    size: int = 800_000,
    min_count: int = 10,
    longest: int = 5,
    squared: bool = False,
    capacity: int = CAPACITY,
) -> Collocations:
    """The collocations of a corpus. Goes through its documents once for each length, and once more for words."""
    if unit not in ("word", "token"):
        raise BesagError(f"unit={unit!r}: n-grams are of 'word' or 'token'.{nearest(unit, ['word', 'token'])}")
    if longest not in SHARES or size < 1 or min_count < 0:
        raise BesagError(
            f"longest={longest}, size={size}, min_count={min_count}: n-grams have 2 to 5 units, size is 1 or more and "
            f"min_count 0 or more"
        )
    reader = Words(statistics, min_count, capacity) if unit == "word" else Tokens(statistics, min_count)
    width = len(reader.counts)  # U
    frequent = np.arange(width)
    levels = [_Level(frequent, frequent, frequent, reader.counts)]  # of single units nothing but the counts is used
    for length in range(2, longest + 1):
        counts = Counts(capacity)
        for units in reader:  # (C,) −1 where nothing frequent stands
            known = units
            for level in levels[1:]:
                known = _lengthen(level, known, units, len(units) - len(known) + 1, width)
            both = (known[:-1] >= 0) & (known[1:] >= 0)
            counts.add(known[:-1][both] * width + units[length - 1 :][both])
        keys, seen = counts.above(max(min_count - counts.missed, 0))
        prefix = keys // width
        suffix = (
            keys % width if length == 2 else find(levels[-1].keys, levels[-1].suffix[prefix] * width + keys % width)
        )
        whole = suffix >= 0  # only lossy counting can have lost one
        levels.append(_Level(keys[whole], prefix[whole], suffix[whole], seen[whole]))
        if not len(levels[-1].keys):
            break
    return _ranked(levels, reader, width, size, longest, squared)


def _lengthen(level: _Level, known: Ints, units: Ints, length: int, width: int) -> Ints:
    """From the (n−1)-gram that begins at each place to the n-gram that does; −1 where it is not frequent."""
    before, last = known[:-1], units[length:]
    able = (before >= 0) & (last >= 0)
    longer = np.full(len(before), -1, dtype=np.int64)
    longer[able] = find(level.keys, before[able] * width + last[able])
    return longer


def _ranked(
    levels: list[_Level], reader: Tokens | Words, width: int, size: int, longest: int, squared: bool
) -> Collocations:
    total = sum(SHARES[length] for length in range(2, longest + 1))
    best: list[Floats] = []  # A of each length
    rows: list[Ints] = []
    scores: list[Floats] = []
    for length, level in enumerate(levels, 1):
        logs = np.log(level.counts) - np.log(reader.total)
        if length == 1:
            best.append(logs)
            continue
        parts = np.full(len(level.keys), -np.inf)
        for cut in range(1, length):
            head = tail = np.arange(len(level.keys))
            for upper in range(length, cut, -1):
                head = levels[upper - 1].prefix[head]
            for upper in range(length, length - cut, -1):
                tail = levels[upper - 1].suffix[tail]
            parts = np.maximum(parts, best[cut - 1][head] + best[length - cut - 1][tail])
        best.append(np.maximum(logs, parts))
        pmi = logs - parts
        score = pmi + logs if squared else pmi
        order = np.lexsort((level.keys, -score))
        order = order[pmi[order] > 0][: int(size * SHARES[length] / total)]
        rows.append(_spelled(levels, length, order, width))
        scores.append(score[order])
    ids = [reader.spell(row) for level_rows in rows for row in level_rows.tolist()]
    return Collocations(_padded(ids), np.concatenate(scores) if scores else np.empty(0))


def _spelled(levels: list[_Level], length: int, which: Ints, width: int) -> Ints:
    """(M, n) the units of n-grams."""
    units = np.empty((len(which), length), dtype=np.int64)
    for place in range(length, 1, -1):
        units[:, place - 1] = levels[place - 1].keys[which] % width
        which = levels[place - 1].prefix[which]
    units[:, 0] = which
    return units


def _padded(rows: list[list[int]]) -> Ints:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), int(lengths.max(initial=1))), -1, dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = [id for row in rows for id in row]
    return ids
