"""Texts as a scoring method sees them: n places to score, numbered from 0, each of which can be hidden and asked.

A passage holds B texts of one shape (the same length, the same places scored), so that a method plans for all of them
at once. Special tokens and context never show up here: they are shown to the network and cannot be hidden. Text longer
than the model is cut into windows here too, question by question, so no method knows of windows: every asked place
stands in the window that gives it most context on both sides (for a causal model: on the left).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.conditionals.contract import Conditionals, Given
from besag.engine import Answers, Request
from besag.errors import BesagError
from besag.places.windows import ends, windows
from besag.reductions import Reduction, Target
from besag.results.status import Status
from besag.vocabulary import Encoded, Vocabulary

BLOCK = 2**22  # ids in one request, so that a book does not need a matrix of its length squared


class Parts(NamedTuple):
    """What a method returns, in nats: a number a place, what belongs to no place, and how sure it is."""

    log_probs: Floats  # (B, n)
    rank: Ints | None = None  # (B, n)
    entropy: Floats | None = None  # (B, n)
    extra: Mapping[str, Floats] = {}  # (B,) each; nobody writes to the default
    standard_error: Floats | None = None  # (B,)
    top: tuple[Ints, Floats] | None = None  # (B, n, k) each: the likeliest tokens at a place, where they were wanted

    @classmethod
    def of(cls, answers: Answers) -> Parts:
        top = (answers["top_ids"], answers["top_log_probs"]) if "top_ids" in answers else None
        return cls(answers["target"].astype(np.float64), answers.get("rank"), answers.get("entropy"), top=top)


ScorePlan: TypeAlias = Generator[Request, Answers, Parts]
Asking: TypeAlias = Generator[Request, Answers, Answers]


@dataclass(frozen=True)
class Passage:
    texts: Sequence[Encoded]  # B of one shape
    conditionals: Conditionals
    wanted: tuple[Reduction, ...] = (Target(),)
    sources: Sequence[Ints] = ()  # token ids of what each text is given; none: the engine's source, if there is one
    ids: Ints = field(init=False)  # (B, L)
    words: Ints = field(init=False)  # (B, n) the word each place belongs to

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", np.stack([text.ids for text in self.texts]))
        object.__setattr__(self, "words", np.stack([text.words[run_of(self.places)] for text in self.texts]))

    @property
    def places(self) -> Ints:
        """(n,) the positions, among the encoded tokens, that are scored."""
        return self.texts[0].places

    @property
    def size(self) -> int:
        return len(self.places)

    @property
    def specials(self) -> str:
        """Which special tokens the network sees around the text."""
        (lead, trail), tokens = ends(self.texts[0]), self.texts[0].tokens
        if not lead and not trail:
            return "none added"
        return f"{' '.join([*tokens[:lead], '…', *tokens[len(tokens) - trail :]])} shown, not scored"

    def ask(
        self,
        hide: Bools,
        row: Ints,
        index: Ints,
        *more: Reduction,
        shown: Ints | None = None,
        target: Ints | None = None,
        wish: str = "",
    ) -> Asking:
        """Ask about place index[m] in copy row[m] of each text, where copy r hides the places with hide[r].

        hide is (K, n), or (B, K, n) where it differs between texts; row and index are (M,), or (B, M); answers (B, M).
        shown, (B, K, n), are the tokens that the copies show at places not hidden, and target, (B, M) or (B, M, t), the
        tokens asked for; both are the text's own unless given. `wish`: how the network is to be asked.
        """
        texts, length = self.ids.shape
        hidden = np.zeros((texts, hide.shape[-2], length), bool)  # (B, K, L)
        hidden[:, :, run_of(self.places)] = hide
        row, place = np.broadcast_to(row, (texts, row.shape[-1])), self.places[index]
        place = np.broadcast_to(place, row.shape)  # (B, M)
        if target is None:
            target = np.take_along_axis(self.ids, place, 1)
        ids: Ints = self.ids[:, None]  # (B, 1, L): one for all copies
        if shown is not None:
            ids = np.repeat(ids, hidden.shape[1], 1)  # (B, K, L)
            ids[:, :, run_of(self.places)] = shown
        limit = self.conditionals.max_length
        if limit is not None and length > limit:
            ids, hidden, row, place = self._windows(limit, ids, hidden, row, place)
        mask = self.conditionals.vocabulary.mask_id
        copies = np.where(hidden, 0 if mask is None else mask, ids)  # (B, K, L)
        row = row + copies.shape[1] * np.arange(texts)[:, None]  # counted over all texts
        target = target.reshape(row.size, *target.shape[2:])  # (B · M,) or (B · M, t)
        flat = copies.reshape(-1, copies.shape[-1]), row.ravel(), place.ravel(), target
        context = {wish: np.ones((len(flat[0]), 1), np.int64)} if wish else {}
        given = Given(tuple(self.sources), np.repeat(np.arange(texts), copies.shape[1])) if self.sources else None
        answers = yield Request((*self.wanted, *more), *flat, context=context, given=given)
        return {key: values.reshape(texts, -1, *values.shape[1:]) for key, values in answers.items()}

    def ask_shown(self, *more: Reduction, wish: str = "") -> Asking:
        """Ask about every place of one copy that hides nothing."""
        index = np.arange(self.size)
        return (yield from self.ask(np.zeros((1, self.size), bool), np.zeros_like(index), index, *more, wish=wish))

    def ask_each(self, hide: Callable[[Ints], Bools]) -> Asking:
        """Ask about every place once, each in a copy of its own that hides `hide(indices)`, (b, n) or (B, b, n)."""
        block = max(1, BLOCK // self.ids.size)
        answers = []
        for start in range(0, self.size, block):
            index = np.arange(start, min(start + block, self.size))
            answers.append((yield from self.ask(hide(index), index - start, index)))
        return {key: np.concatenate([part[key] for part in answers], 1) for key in answers[0]}

    def started(self) -> Passage:
        """The texts as a causal model needs them: where nothing stands before the first place, its start token does."""
        if self.conditionals.sees == "both" or self.places[0] > 0:
            return self
        token = getattr(self.conditionals, "bos_id", None)
        if token is None:
            raise BesagError(f"{self.conditionals.name!r} has no start token, so a first token has no probability")
        return replace(
            self,
            texts=[
                replace(
                    text,
                    ids=np.concatenate([[token], text.ids]),
                    tokens=(self.conditionals.vocabulary.token(token), *text.tokens),
                    offsets=np.concatenate([[[0, 0]], text.offsets]),
                    words=np.concatenate([[-1], text.words]),
                    special=np.concatenate([[True], text.special]),
                    places=text.places + 1,
                )
                for text in self.texts
            ],
        )

    def _windows(self, limit: int, ids: Ints, hidden: Bools, row: Ints, place: Ints) -> tuple[Ints, Bools, Ints, Ints]:
        """Cut each asked copy to `limit` tokens: the special tokens at both ends and a stretch of the text between."""
        (lead, trail), length = ends(self.texts[0]), self.ids.shape[1]
        capacity = limit - lead - trail
        if capacity < 1:
            raise BesagError(f"a model of {limit} positions has no room beside {lead + trail} special tokens")
        body = length - lead - trail
        if self.conditionals.sees == "left":
            stride = max(1, capacity // 2)  # the earliest window that still holds the place
            start = np.clip(-(-(place - lead + 1 - capacity) // stride) * stride, 0, body - capacity)
        else:
            alone = len(np.unique(row[0])) == row.shape[1]  # one ask a copy: each has a window of its own
            start = windows(body, capacity, (place - lead).ravel(), centred=alone).reshape(place.shape)
        # (C, 2) copy and start of every window that some text asks about, and the window of each ask
        cuts, window = np.unique(np.stack([row, start], -1).reshape(-1, 2), axis=0, return_inverse=True)
        stretch = lead + cuts[:, 1:] + np.arange(capacity)
        head, tail = (
            np.broadcast_to(end, (len(cuts), len(end))) for end in (np.arange(lead), np.arange(length - trail, length))
        )
        take = np.concatenate([head, stretch, tail], 1)  # (C, limit) positions in the text
        ids = np.broadcast_to(ids, hidden.shape)[:, cuts[:, :1], take]  # (B, C, limit)
        return ids, hidden[:, cuts[:, :1], take], window.reshape(row.shape), place - start


def status_of(text: Encoded, vocabulary: Vocabulary) -> Status:
    """Is there something of the text to ask about: a known token that holds more than white space?"""
    if not text.decodable:
        return Status.UNDECODABLE
    holds = np.diff(text.offsets[text.places]).astype(bool)  # (n, 1) a character; the rest is blank
    if text.unknown and text.unknown >= holds.sum():
        return Status.UNKNOWN
    if not holds.any() or all(vocabulary.blank(text.tokens[place]) for place in text.places):
        return Status.EMPTY
    return Status.OK


def run_of(places: Ints) -> Ints | slice:
    """The same places as a slice where they are one run, which numpy reads many times faster."""
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places
