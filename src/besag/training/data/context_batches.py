"""Passages of several pieces: a document under its header, and beside it documents that it belongs with.

`data.unit` cuts documents into pieces as ever; `data.context` says which of them make one passage:

    alone      [CLS] header d₁ [SEP]
    together   [CLS] header d₁ [SEP] header d₂ [SEP] … as many of what belongs together as fit (CDLM); each piece once
               an epoch, first pieces of all before their second ones; neighbours in a document are joined
    pairs      [CLS] header A [SEP] header B [SEP], for every piece A: B is what follows it, a piece of any other
               document or one of a linked document, equally often of those that there are (LinkBERT)

Between two documents stand the special tokens that end a passage. The law of masks hides tokens of the whole passage; a
field that `data.hide` names is hidden whole or shown whole, in all documents of a passage at once, so that none tells
another's. Pieces take half of a passage at most, so that there is room for another; the longest header takes its room
from every one. Knows tokens, numbers and noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from besag import noise
from besag.arrays import Floats, Ints
from besag.errors import BesagError, quoted
from besag.masks import Masking
from besag.masks.passages import Passages
from besag.noise import Training
from besag.training.data.assembly import Parts, Template
from besag.training.data.batch_plan import BatchPlan, Planned, scattered
from besag.training.data.clock import Clock
from besag.training.data.contexts import Contexts
from besag.training.data.loader import BatchDataset
from besag.training.data.tokens import IN_SPAN, SPAN, TAG, WORD
from besag.training.recipe import Data
from besag.training.recipe.contexts import KINDS
from besag.vocabulary import Vocabulary

CONTIGUOUS, RANDOM, LINKED = range(len(KINDS))
TRIES = 64  # to find a random document that does not belong with the first


class Pieces(NamedTuple):
    start: Ints  # (Q,) in the tokens of the text
    length: Ints  # (Q,)
    document: Ints  # (Q,)


class Joined(NamedTuple):
    """The passages of an epoch: passage p is pieces first[p] … first[p+1]−1."""

    pieces: Pieces
    first: Ints  # (P + 1,)
    relation: Ints  # (P,) number of its kind in KINDS; −1: nothing stands beside, or nothing is said


class ContextPlan(BatchPlan):
    """`start` of what is planned is the number of a passage in its epoch."""

    def __init__(
        self, contexts: Contexts, data: Data, vocabulary: Vocabulary, *, seed: int, unpadded: bool = False,
        copies: int = 1,
    ) -> None:  # fmt: skip
        self.contexts, self.template = contexts, Template(vocabulary)
        self.headers = contexts.header_sizes  # (D,)
        self.separator = self.template.tail if len(self.template.tail) else self.template.head
        if data.context != "alone" and not len(self.separator):
            raise BesagError(
                f"data.context = {data.context!r} puts special tokens between documents, and this tokenizer has none"
            )
        self._joined: dict[int, Joined] = {}
        names = () if contexts.headers is None else contexts.headers.meta.get("tags", ())
        self.chances = np.array([np.nan, *(data.hide.get(name, np.nan) for name in names)])  # (F + 1,)
        super().__init__(contexts.text, data, special=self.template.size, seed=seed, unpadded=unpadded, copies=copies)
        self.whole = self.room  # of a passage; from here on `room` is that of a piece
        share = self.whole if data.context == "alone" else (self.whole - len(self.separator)) // 2
        longest = int(self.headers.max(initial=0))
        self.room = share - longest
        if self.room < max(longest, 1):
            least = longest + max(longest, 1)
            least = least if data.context == "alone" else 2 * least + len(self.separator)
            raise BesagError(
                f"data.max_length = {data.max_length} leaves {max(self.room, 0)} tokens to a piece of text beside the "
                f"longest header, which has {longest}{self._said(vocabulary)}: give it at least {least + self.special}"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_joined": {}}

    def joined(self, number: int) -> Joined:
        """All passages of an epoch, before they are shuffled."""
        if number not in self._joined:
            self._passages(number)
        return self._joined[number]

    def passages(self, planned: Planned, number: int) -> Passages:
        """Passages of an epoch, with headers and what stands beside; fields are hidden, shown or left to the law."""
        tokens, marks, fields, length = self._written(planned.start, self.joined(number))
        start = np.cumsum(length) - length
        made = self.template.passages(tokens, marks, start, length, planned.draw)
        place, head = made.place, len(self.template.head)
        field = np.zeros(len(made.ids), np.int64)
        field[(place >= head) & (place < (length + head)[made.row])] = fields
        return settled(made, field, self.chances, self.seed)

    def _passages(self, number: int) -> tuple[Ints, Ints]:
        start, length = super()._passages(number)
        pieces = Pieces(start, length, np.searchsorted(self.cache.documents, start, side="right") - 1)
        make = {"alone": self._alone, "together": self._together, "pairs": self._pairs}[self.data.context]
        joined = make(pieces, number)
        self._joined = {each: one for each, one in self._joined.items() if each >= number - 2} | {number: joined}
        inside = np.append(0, np.cumsum(joined.pieces.length + self.headers[joined.pieces.document]))
        size = np.diff(inside[joined.first]) + (np.diff(joined.first) - 1) * len(self.separator)
        return np.arange(len(size)), size

    def _also(self) -> list[object]:
        headers, related = self.contexts.headers, self.contexts.related
        return [
            "context", self.data.context, list(self.data.partners), len(self.separator),
            None if headers is None else headers.meta["arrays"], None if related is None else related.digest,
        ]  # fmt: skip

    def _said(self, vocabulary: Vocabulary) -> str:
        headers = self.contexts.headers
        if headers is None:
            return ""
        one = int(self.headers.argmax())
        ids = headers.tokens[headers.documents[one] : headers.documents[one + 1]].tolist()
        return f" ({quoted(vocabulary.tokenizer.decode(ids))})"

    # ---- what stands together

    def _alone(self, pieces: Pieces, number: int) -> Joined:
        count = len(pieces.start)
        return Joined(pieces, np.arange(count + 1), np.full(count, -1))

    def _together(self, pieces: Pieces, number: int) -> Joined:
        related = self.contexts.related
        assert related is not None
        order, leader = related.walk(self._drawn(Training.CONTEXT_WALK, number, len(related.low)))
        rank = np.empty(len(order), np.int64)  # (D,)
        rank[order] = np.arange(len(order))
        begins = np.searchsorted(pieces.document, np.arange(len(order)))  # (D,)
        turn = np.arange(len(pieces.start)) - begins[pieces.document]  # of a piece in its document
        context = np.searchsorted(np.flatnonzero(np.append(True, leader[1:] != leader[:-1])), rank, side="right")
        which = context[pieces.document]
        sequence = np.lexsort((rank[pieces.document], turn, which))
        return self._packed(Pieces(*(part[sequence] for part in pieces)), which[sequence])

    def _packed(self, pieces: Pieces, context: Ints) -> Joined:
        """The next pieces of one context as long as they fit; what goes on where the last one ended is joined to it."""
        made: list[tuple[int, int, int]] = []
        first: list[int] = []
        used, last = 0, -1
        for start, length, document, one in zip(*(part.tolist() for part in pieces), context.tolist(), strict=True):
            header = int(self.headers[document])
            goes_on = bool(made) and made[-1][2] == document and sum(made[-1][:2]) == start
            more = length if goes_on else length + header + len(self.separator)
            if one != last or used + more > self.whole:
                first.append(len(made))
                used, last, goes_on = length + header, one, False
            else:
                used += more
            if goes_on:
                made[-1] = made[-1][0], made[-1][1] + length, document
            else:
                made.append((start, length, document))
        parts = Pieces(*np.array(made, np.int64).reshape(-1, 3).T)
        return Joined(parts, np.append(first, len(made)).astype(np.int64), np.full(len(first), -1))

    def _pairs(self, pieces: Pieces, number: int) -> Joined:
        count = len(pieces.start)
        partner = np.full((len(KINDS), count), -1)  # (3, Q) the second piece of each kind, −1 where there is none
        follows = np.append(pieces.document[1:] == pieces.document[:-1], False)
        if KINDS[CONTIGUOUS] in self.data.partners:
            partner[CONTIGUOUS] = np.where(follows, np.arange(count) + 1, -1)
        if KINDS[RANDOM] in self.data.partners:
            partner[RANDOM] = self._random(pieces, number)
        if KINDS[LINKED] in self.data.partners:
            partner[LINKED] = self._linked(pieces, number)
        drawn = self._drawn(Training.CONTEXT_KIND, number, count)
        there = (partner >= 0).sum(0)  # (Q,) kinds to choose from
        nth = np.cumsum(partner >= 0, axis=0) - 1
        chosen = (partner >= 0) & (nth == (drawn * there).astype(np.int64))
        which = np.where(there > 0, chosen.argmax(0), -1)
        second = np.where(there > 0, partner[which, np.arange(count)], -1)
        both = np.stack([np.arange(count), second], 1).ravel()
        first = np.append(0, np.cumsum(1 + (second >= 0)))
        return Joined(Pieces(*(part[both[both >= 0]] for part in pieces)), first, which)

    def _linked(self, pieces: Pieces, number: int) -> Ints:
        related, count = self.contexts.related, len(pieces.start)
        assert related is not None
        document = related.draw(pieces.document, self._drawn(Training.CONTEXT_PARTNER, number, count))
        return self._any_piece(pieces, document, self._drawn(Training.CONTEXT_PIECE, number, count))

    def _random(self, pieces: Pieces, number: int) -> Ints:
        """Any piece of the text, but of no document that belongs with the first; −1 where none was found."""
        related, count = self.contexts.related, len(pieces.start)
        found = np.full(count, -1)
        for attempt in range(TRIES):
            open_ = np.flatnonzero(found < 0)
            if not len(open_):
                break
            drawn = noise.uniform(self.seed, Training.CONTEXT_PARTNER, number, open_, 1 + attempt)
            candidate = (drawn * count).astype(np.int64)
            one, other = pieces.document[open_], pieces.document[candidate]
            apart = one != other
            if related is not None:
                apart &= ~related.contains(one, other)
            found[open_[apart]] = candidate[apart]
        return found

    def _any_piece(self, pieces: Pieces, document: Ints, drawn: Floats) -> Ints:
        """(Q,) a piece of each of these documents; −1 where there is no document."""
        low, high = (
            np.searchsorted(pieces.document, document),
            np.searchsorted(pieces.document, document, side="right"),
        )
        found: Ints = np.where(document < 0, -1, low + (drawn * (high - low)).astype(np.int64))
        return found

    def _drawn(self, stream: int, number: int, count: int) -> Floats:
        return scattered(self.seed, stream, number, count)

    # ---- as it is written

    def _written(self, numbers: Ints, joined: Joined) -> tuple[np.ndarray, np.ndarray, Ints, Ints]:
        """(N,) tokens, marks and fields of these passages, one after the other, and how long each is (R,)."""
        text, headers, pieces = self.contexts.text, self.contexts.headers, joined.pieces
        between = np.zeros(len(self.separator), text.marks.dtype)
        nothing = np.zeros(0, np.int64)
        tokens, marks, fields = [nothing.astype(text.tokens.dtype)], [nothing.astype(text.marks.dtype)], [nothing]
        length: list[int] = []

        def add(ids: np.ndarray, mark: np.ndarray, field: np.ndarray) -> int:
            tokens.append(ids)
            marks.append(mark)
            fields.append(field)
            return len(ids)

        for passage in numbers.tolist():
            low, high = joined.first[passage : passage + 2].tolist()
            size = 0
            for part in range(low, high):
                start, run, document = (int(each[part]) for each in pieces)
                if part > low:
                    size += add(self.separator, between, between)
                if headers is not None:
                    own = slice(int(headers.documents[document]), int(headers.documents[document + 1]))
                    mark = headers.marks[own]
                    size += add(headers.tokens[own], _begun(mark & (1 << TAG) - 1, text.marks.dtype), mark >> TAG)
                mark = _begun(text.marks[start : start + run], text.marks.dtype)
                size += add(text.tokens[start : start + run], mark, np.zeros(run, np.int64))
            length.append(size)
        size_of = np.array(length, np.int64)
        return np.concatenate(tokens), np.concatenate(marks), np.concatenate(fields).astype(np.int64), size_of


class ContextBatches(BatchDataset):
    """Batch `index` of the run, and how the pieces in its passages belong together."""

    plan: ContextPlan

    def clean(self, index: int) -> Passages:
        return self.plan.passages(self.planned(index), self.plan.epoch_of(index))

    def parts(self, index: int) -> Parts:
        parts = super().parts(index)
        if self.plan.data.context != "pairs":
            return parts
        relation = self.plan.joined(self.plan.epoch_of(index)).relation
        return parts._replace(relation=relation[self.planned(index).start])


def settled(passages: Passages, field: Ints, chances: Floats, seed: int) -> Passages:
    """Fields (T,) with a chance: hidden whole with it, and otherwise shown whole; NaN: text like any other.

    All places of a field in a passage are hidden together, whichever document they are of.
    """
    chance = chances[field]
    ruled = ~np.isnan(chance)
    if not ruled.any():
        return passages
    hidden = ruled & (noise.uniform(seed, Training.FIELD, passages.draw[passages.row], field) < chance)
    return passages._replace(free=passages.free & (hidden | ~ruled), always=passages.free & hidden)


def held_out(contexts: Contexts, data: Data, vocabulary: Vocabulary, tokens: int, seed: int) -> Passages:
    """Passages as those of training, of at least so many tokens where there are as many: to be evaluated on."""
    plan = ContextPlan(contexts, data, vocabulary, seed=seed)
    epoch = plan.epoch(0)
    order = np.argsort(noise.uniform(seed, Training.SHUFFLE, epoch.start), kind="stable")
    before = np.cumsum(epoch.length[order]) - epoch.length[order]
    order = order[before < tokens]
    return plan.passages(Planned(epoch.start[order], epoch.length[order], np.arange(len(order))), 0)


def batches(
    contexts: Contexts,
    data: Data,
    vocabulary: Vocabulary,
    masking: Masking,
    clock: Clock,
    *,
    seed: int,
    unpadded: bool = False,
    copies: int = 1,
    static: bool = False,
) -> ContextBatches:
    plan = ContextPlan(contexts, data, vocabulary, seed=seed, unpadded=unpadded, copies=copies)
    return ContextBatches(plan, vocabulary, masking, clock, seed=seed, static=static)


def _begun(marks: np.ndarray, dtype: Any) -> np.ndarray:
    """The marks of a run: whatever its first token stands in begins there."""
    mark = marks.astype(dtype)
    if len(mark):
        mark[0] |= WORD | (mark[0] & IN_SPAN) * (SPAN // IN_SPAN)
    return mark
