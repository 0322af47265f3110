"""A text as a scoring method sees it: n places to score, numbered from 0, each of which can be hidden and asked.

Special tokens and context never show up here: they are shown to the network and cannot be hidden. Text longer than the
model is cut into windows here too, question by question, so no method knows of windows: every asked place stands in the
window that gives it most context on both sides (for a causal model: on the left).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from besag.conditionals.contract import Conditionals
from besag.engine import Answers, Request
from besag.errors import BesagError
from besag.reductions import Reduction, Target
from besag.vocabulary import Encoded, windows

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

BLOCK = 2**22  # ids in one request, so that a book does not need a matrix of its length squared


class Parts(NamedTuple):
    """What a method returns, in nats: a number a place, what belongs to no place, and how sure it is."""

    log_probs: NDArray[np.float64]  # (n,)
    rank: NDArray[np.int64] | None = None
    entropy: NDArray[np.float64] | None = None
    extra: tuple[tuple[str, float], ...] = ()
    standard_error: float | None = None

    @classmethod
    def of(cls, answers: Answers) -> Parts:
        return cls(answers["target"].astype(np.float64), answers.get("rank"), answers.get("entropy"))


def run_of(places: Ints) -> Ints | slice:
    """The same places as a slice where they are one run, which numpy reads many times faster."""
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places


Scoring: TypeAlias = Generator[Request, Answers, Parts]


@dataclass(frozen=True)
class Passage:
    encoded: Encoded
    conditionals: Conditionals
    wanted: tuple[Reduction, ...] = (Target(),)

    @property
    def size(self) -> int:
        return len(self.encoded.places)

    @property
    def words(self) -> Ints:
        """(n,) the word each place belongs to."""
        words: Ints = self.encoded.words[self.encoded.places]
        return words

    @property
    def specials(self) -> str:
        """Which special tokens the network sees around the text."""
        (lead, trail), tokens = self._ends, self.encoded.tokens
        if not lead and not trail:
            return "none added"
        return f"{' '.join([*tokens[:lead], '…', *tokens[len(tokens) - trail :]])} shown, not scored"

    @property
    def _ends(self) -> tuple[int, int]:
        """How many special tokens stand before and after the text."""
        text = np.flatnonzero(~self.encoded.special)
        return (int(text[0]), len(self.encoded.ids) - 1 - int(text[-1])) if len(text) else (len(self.encoded.ids), 0)

    def ask(self, hide: Bools, row: Ints, index: Ints, *more: Reduction) -> Request:
        """Ask about place index[m] in copy row[m] of the text, where copy r hides the places with hide[r] (K, n)."""
        ids, places = self.encoded.ids, self.encoded.places
        place = places[index]
        target = ids[place]
        hidden = np.zeros((len(hide), len(ids)), bool)
        hidden[:, run_of(places)] = hide
        limit = self.conditionals.max_length
        if limit is not None and len(ids) > limit:
            take, hidden, row, place = self._windows(limit, hidden, row, place)
            ids = ids[take]
        mask = self.conditionals.vocabulary.mask_id
        copies = np.where(hidden, 0 if mask is None else mask, ids)  # (K, L)
        return Request((*self.wanted, *more), copies, row, place, target)

    def ask_all(self, hide: Bools, *more: Reduction) -> Request:
        """Ask about the hidden places of one copy, all at once; hide (n,)."""
        index = np.flatnonzero(hide)
        return self.ask(hide[None], np.zeros_like(index), index, *more)

    def ask_shown(self) -> Request:
        """Ask about every place of one copy that hides nothing."""
        index = np.arange(self.size)
        return self.ask(np.zeros((1, self.size), bool), np.zeros_like(index), index)

    def ask_each(self, hide: Callable[[Ints], Bools]) -> Generator[Request, Answers, Answers]:
        """Ask about every place once, each in a copy of its own that hides `hide(indices)` (b, n)."""
        block = max(1, BLOCK // len(self.encoded.ids))
        answers = []
        for start in range(0, self.size, block):
            index = np.arange(start, min(start + block, self.size))
            answers.append((yield self.ask(hide(index), index - start, index)))
        if len(answers) == 1:
            return answers[0]
        return {key: np.concatenate([part[key] for part in answers]) for key in answers[0]}

    def started(self) -> Passage:
        """The text as a causal model needs it: where nothing stands before the first place, its start token does."""
        if self.conditionals.sees == "both" or self.encoded.places[0] > 0:
            return self
        token = getattr(self.conditionals, "bos_id", None)
        if token is None:
            raise BesagError(
                f"{self.conditionals.name!r} has no start token, so a first token has no probability under it"
            )
        before = self.encoded
        return replace(
            self,
            encoded=replace(
                before,
                ids=np.concatenate([[token], before.ids]),
                tokens=(self.conditionals.vocabulary.token(token), *before.tokens),
                offsets=np.concatenate([[[0, 0]], before.offsets]),
                words=np.concatenate([[-1], before.words]),
                special=np.concatenate([[True], before.special]),
                places=before.places + 1,
            ),
        )

    def _windows(self, limit: int, hidden: Bools, row: Ints, place: Ints) -> tuple[Ints, Bools, Ints, Ints]:
        """Cut each asked copy to `limit` tokens: the special tokens at both ends and a stretch of the text between."""
        (lead, trail), length = self._ends, len(self.encoded.ids)
        capacity = limit - lead - trail
        if capacity < 1:
            raise BesagError(f"a model of {limit} positions has no room beside {lead + trail} special tokens")
        body = length - lead - trail
        if self.conditionals.sees == "left":
            stride = max(1, capacity // 2)  # the earliest window that still holds the place
            start = np.clip(-(-(place - lead + 1 - capacity) // stride) * stride, 0, body - capacity)
        else:
            start = windows(body, capacity, place - lead, centred=len(np.unique(row)) == len(row))
        cuts, row = np.unique(np.stack([row, start], 1), axis=0, return_inverse=True)  # (K', 2): copy and start
        stretch = lead + cuts[:, 1:] + np.arange(capacity)  # (K', capacity)
        ends = [
            np.broadcast_to(end, (len(cuts), len(end))) for end in (np.arange(lead), np.arange(length - trail, length))
        ]
        take = np.concatenate([ends[0], stretch, ends[1]], 1)  # (K', limit) positions in the text
        return take, hidden[cuts[:, :1], take], row.reshape(-1), place - start
