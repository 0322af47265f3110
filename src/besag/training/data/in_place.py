"""Corrections: what is written stays in sight, and at every place of it is asked what should stand there.

    shown   w, the source, but for the places that the law of masks hides
    asked   y_i at every place i, y the target, token for token

Errors are the places with w_i ≠ y_i: they are the given spans of `error_aware`, which hides some of the others (Wu et
al. 2023). Sides of unlike length are aligned: a run of tokens that became as many others is paired with them one by
one; where their number changed there is no answer for a single place, and nothing is asked there. Knows pairs of
tokens; knows no text.
"""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np

from besag.arrays import Bools, Ints
from besag.masks import Masking
from besag.training.data.assembly import Parts, Template
from besag.training.data.clock import Clock
from besag.training.data.pair_batches import PairBatches, PairPlan
from besag.training.data.parallel import Parallel
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary

FEW = 2  # tokens that differ place by place: no sign of a shift


def aligned(written: Ints, meant: Ints) -> tuple[Ints, Bools]:  # (L,), (M,) -> (L,), (L,)
    """What should stand at each place of what is written, and whether that is known.

    Sides of one length are compared place by place, unless a shift explains much more of them.

    >>> aligned(np.array([1, 2, 3, 4]), np.array([1, 9, 3, 5, 6]))
    (array([1, 9, 3, 4]), array([ True,  True,  True, False]))
    """
    differ = int((written != meant).sum()) if len(written) == len(meant) else -1
    if 0 <= differ <= FEW:
        return meant.copy(), np.ones(len(written), bool)
    blocks = SequenceMatcher(None, written.tolist(), meant.tolist(), autojunk=False).get_opcodes()
    unlike = sum(end - start for kind, start, end, _, _ in blocks if kind != "equal")
    if 0 <= differ <= FEW * unlike:
        return meant.copy(), np.ones(len(written), bool)
    answer, known = written.copy(), np.zeros(len(written), bool)
    for _, start, end, other, last in blocks:
        if end - start == last - other:
            answer[start:end], known[start:end] = meant[other:last], True
    return answer, known


def in_place(parts: Parts, unknown: int | None) -> Parts:
    """Parts whose passages are what is written, with what is meant as their source, made into questions in place.

    The unknown token is no answer: where it is meant, nothing is asked.
    """
    written, meant = parts.passages, parts.source
    assert meant is not None
    ids, free = written.ids.copy(), written.free.copy()
    rows = np.arange(len(written.draw) + 1)
    here, there = (np.searchsorted(side.row, rows).tolist() for side in (written, meant))
    for row in range(len(rows) - 1):
        own = slice(here[row], here[row + 1])
        ids[own], known = aligned(written.ids[own], meant.ids[there[row] : there[row + 1]])
        free[own] &= known
    if unknown is not None:
        free &= ids != unknown
    wrong = free & (ids != written.ids)
    span = np.where(wrong, np.cumsum(wrong) - 1, -1)  # each error is a span of its own
    passages = written._replace(ids=np.where(free, ids, written.ids), free=free, span=span)
    return parts._replace(passages=passages, source=None, shown=written.ids)


class InPlaceBatches(PairBatches):
    """Batch `index` of the run; the plan's passages are what is written."""

    def __init__(self, plan: PairPlan, vocabulary: Vocabulary, masking: Masking, clock: Clock, *, seed: int) -> None:
        super().__init__(plan, vocabulary, masking, clock, seed=seed)
        self.unknown = vocabulary.unknown_id

    def parts(self, index: int) -> Parts:
        return in_place(super().parts(index), self.unknown)


def batches(
    text: Parallel, data: Data, vocabulary: Vocabulary, masking: Masking, clock: Clock, *, seed: int
) -> InPlaceBatches:
    written_first = Parallel(source=text.target, target=text.source)
    plan = PairPlan(written_first, data, special=Template(vocabulary).size, seed=seed)
    return InPlaceBatches(plan, vocabulary, masking, clock, seed=seed)
