"""One copy of one text for `augment.py`: words hidden, drawn anew, and kept if the text is still like the original.

Knows what a move is, when it is refused, and why a text stayed as it was. A copy is a plan: what it asks is pooled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag import noise
from besag.arrays import Floats, Ints
from besag.checks import MOST_COPIES
from besag.conditionals.contract import Conditionals
from besag.engine import Answers, Plan, Request
from besag.errors import BesagError, quoted
from besag.noise import Sampling
from besag.places.filling import filled
from besag.places.positions import Position, TokenisedText, all_places, tokens_of
from besag.reductions import Chunk
from besag.results.status import Status
from besag.results.words import counted, number
from besag.samplers.drawing import Drawing, law_of, sample
from besag.samplers.editing.augmented import Augmented, Change
from besag.samplers.editing.states import ask_mean, cosine, has_states
from besag.vocabulary import Encoded

if TYPE_CHECKING:
    from besag.samplers.editing.augment import Augmenting

Measure: TypeAlias = Callable[[str, str], float]
LETTER = re.compile(r"\w")


@dataclass(frozen=True, eq=False)
class Copy:
    """One copy of one text, on its way."""

    how: Augmenting
    conditionals: Conditionals
    refill: Refill
    centre: Floats | None  # (H,) what the states of all texts share; None where states are not wanted
    encoded: Encoded
    words: list[Ints]  # the places of each word that may change
    number: int
    copy: int
    attempt: int = 0  # of several, where copies say the same

    def plan(self) -> Plan[Augmented]:
        how, count = self.how, _Count()
        ids, read, near, change, best = self.encoded.ids.copy(), self.encoded, 1.0, 0.0, -math.inf
        problem = self._problem()
        if problem is not None:
            return self._row(ids, read, near, change, count, *problem)
        origin = yield from self._state(self.encoded, count)
        heights = self._noise(Sampling.DRAW, len(ids))  # (rounds, L)
        for turn, order in enumerate(self._noise(Sampling.WHERE, len(self.words)).argsort(1, kind="stable")):
            for places in self._groups(order):
                new, gain = yield from self._refilled(ids, places, heights[turn, places], count)
                count.moves += 1
                if (new == ids).all():
                    continue
                again = self._read(new)
                if again is None:
                    count.unread += 1
                    continue
                like = yield from self._similarity(origin, again, count)
                best = max(best, like)
                if how.similarity is not None and not like >= how.similarity:
                    count.refused += 1
                    continue
                ids, read, near, change = new, again, like, change + gain
                count.accepted += 1
        unchanged = bool((ids == self.encoded.ids).all())
        why = _reason(count, best) if unchanged else (Status.OK, "")
        return self._row(ids, read, near, change, count, *why)

    def _noise(self, stream: int, size: int) -> Floats:
        """(rounds, size) numbers of this copy alone."""
        at = np.arange(self.how.rounds * size).reshape(-1, size)
        return noise.uniform(self.how.seed, stream, self.number, self.copy + MOST_COPIES * self.attempt, at)

    def _problem(self) -> tuple[Status, str] | None:
        """Why nothing can be changed in this text, if so."""
        limit = self.conditionals.max_length
        if not len(self.encoded.places):
            status = Status.EMPTY if self.encoded.decodable else Status.UNDECODABLE
            return status, status.sentence
        if limit is not None and len(self.encoded.ids) > limit:
            return Status.LONG, f"the text has {len(self.encoded.ids)} tokens, and the model sees {limit}"
        return None if self.words else (Status.FIXED, "no word of it may change")

    def _groups(self, order: Ints) -> Iterator[Ints]:
        """The places hidden together, of as many words as a round moves, in this order."""
        chosen = order[: max(1, round(self.how.share * len(order)))].tolist()
        for start in range(0, len(chosen), self.how.together):
            yield np.sort(np.concatenate([self.words[at] for at in chosen[start : start + self.how.together]]))

    def _refilled(
        self, ids: Ints, places: Ints, uniform: Floats, count: _Count
    ) -> Generator[Request, Answers, tuple[Ints, float]]:
        """The places drawn anew, from left to right; and by how much log p(places | rest) grew."""
        new, old, gain = ids.copy(), ids.copy(), 0.0
        new[places] = old[places] = int(self.conditionals.vocabulary.mask_id or 0)
        for place, height in zip(places.tolist(), uniform.tolist(), strict=True):
            apart = bool((new != old).any())  # so far other tokens were drawn than stood there: two contexts
            sequences = np.stack([new, old]) if apart else new[None]
            row = np.arange(len(sequences))
            target = np.tile([int(ids[place]), -1], (len(row), 1))
            target[0, 1] = self._forbidden(new, place)
            at, noises = np.full(len(row), place), np.full(len(row), height)
            answers = yield Request((self.refill,), sequences, row, at, target, noises)
            count.passes += len(row)
            new[place], old[place] = int(answers["token"][0]), ids[place]
            gain += float(answers["log_prob"][0]) - float(answers["target"][-1])
        return new, gain

    def _forbidden(self, new: Ints, place: int) -> int:
        """The original token, where it would complete the original word; −1: nothing is forbidden."""
        if not self.how.other:
            return -1
        [own] = [places for places in self.words if place in places]
        last = bool((new[own[:-1]] == self.encoded.ids[own[:-1]]).all())  # else one of them is hidden, or another one
        return int(self.encoded.ids[place]) if last else -1

    def _read(self, ids: Ints) -> Encoded | None:
        """The text of these ids, if it reads back as just these in the same words; a comma is no word."""
        vocabulary, changed = self.conditionals.vocabulary, np.flatnonzero(ids != self.encoded.ids)
        text = filled(vocabulary, self.encoded, changed.tolist(), ids[changed].tolist())
        [again] = vocabulary.encode([text])
        if not np.array_equal(again.ids, ids) or not np.array_equal(again.words, self.encoded.words):
            return None
        of = units(self.conditionals, self.encoded)
        lettered = not has_states(self.conditionals) or all(
            LETTER.search(span(again, of == unit)[0]) for unit in np.unique(of[changed]).tolist()
        )
        return again if lettered else None

    def _similarity(self, origin: Floats | None, read: Encoded, count: _Count) -> Generator[Request, Answers, float]:
        if self.how.measure is not None:
            return measured(self.how.measure, self.encoded.text, read.text)
        state = yield from self._state(read, count)
        if origin is None or state is None:
            places = self.encoded.places
            return float((read.ids[places] == self.encoded.ids[places]).mean())
        return cosine(origin, state)

    def _state(self, read: Encoded, count: _Count) -> Generator[Request, Answers, Floats | None]:
        """(H,) the mean of the final states, less what all texts share; None where states are not wanted."""
        if self.centre is None:
            return None
        count.passes += 1
        return (yield from ask_mean(read.ids[None], self.encoded.places)) - self.centre

    def _row(
        self, ids: Ints, read: Encoded, near: float, change: float, count: _Count, status: Status, reason: str
    ) -> Augmented:
        of, changed = units(self.conditionals, self.encoded), list[Change]()
        for unit in np.unique(of[ids != self.encoded.ids]).tolist():
            old, start = span(self.encoded, of == unit)
            changed.append(Change(old, span(read, of == unit)[0], start))
        texts = self.encoded.text, read.text, self.number, self.copy
        counts = count.moves, count.accepted, count.refused, count.unread, count.passes
        return Augmented(*texts, tuple(changed), near, change if changed else 0.0, *counts, status, reason)


@dataclass
class _Count:
    moves: int = 0
    accepted: int = 0
    refused: int = 0
    unread: int = 0
    passes: int = 0


def _reason(count: _Count, best: float) -> tuple[Status, str]:
    """Why a text is as it was."""
    if count.refused:
        return Status.UNLIKE, f"{counted(count.refused, 'new text')} too unlike it, {number(best, 3)} at best"
    if count.unread:
        new = counted(count.unread, "new text")
        return Status.UNREAD, f"{new} would read as other tokens, or with a sign for a word"
    return Status.SAME, "its words were drawn again"


def measured(measure: Measure, original: str, text: str) -> float:
    """What a user's function says, if it is a number."""
    about = f"of {quoted(original)} and {quoted(text)}"
    try:
        value = measure(original, text)
    except Exception as problem:  # whatever it is: the user wrote it, and must learn where it happened
        raise BesagError(f"the measure {about} raised {type(problem).__name__}: {problem}") from problem
    try:
        similarity = float(value)
    except (TypeError, ValueError) as problem:
        raise BesagError(f"the measure {about} is {quoted(value)}: a measure gives a number") from problem
    if math.isnan(similarity):  # neither similar nor not: nobody could say why the text was refused
        raise BesagError(f"the measure {about} is NaN: a measure gives a number")
    return similarity


def units(conditionals: Conditionals, encoded: Encoded) -> Ints:
    """(L,) what changes as one, by number: the words, or the tokens where no spaces set words apart; −1: special."""
    if conditionals.vocabulary.spaced:
        return encoded.words
    return np.where(encoded.special, -1, np.arange(len(encoded.ids)))


def span(encoded: Encoded, tokens: NDArray[np.bool_]) -> tuple[str, int]:
    """The text of some tokens that stand side by side, and where it starts."""
    ends = encoded.offsets[tokens]
    start, end = int(ends[:, 0].min()), int(ends[:, 1].max())
    return encoded.text[start:end], start


def movable(conditionals: Conditionals, text: str, encoded: Encoded, keep: Sequence[Position]) -> list[Ints]:
    """The places of each word that may change.

    Tokens with a letter or a digit (of an exact law all of them), in a word without special or unknown tokens, no part
    of which is to be kept. What is to be kept is named for many texts, so one that does not have it is no mistake.
    """
    if not encoded.decodable:
        return []
    kept = np.isin(encoded.ids, [*conditionals.vocabulary.special_ids]) | encoded.special
    where = TokenisedText.of(conditionals.vocabulary, text, encoded)
    kept[list(tokens_of(all_places(where, keep, name="keep", missing=True)))] = True
    lettered = np.ones(len(kept), bool)
    if has_states(conditionals):
        lettered = np.array([bool(LETTER.search(encoded.text[start:end])) for start, end in encoded.offsets.tolist()])
    of = units(conditionals, encoded)
    words = [np.flatnonzero(of == unit) for unit in np.unique(of[encoded.places]).tolist()]
    return [places[lettered[places]] for places in words if lettered[places].any() and not kept[places].any()]


@dataclass(frozen=True, eq=False)  # one for all plans of a run, so that what they ask pools
class Refill:
    """A token drawn at the ask's own noise, its log-probability under the model, and that of another one.

    Targets are (m, 2): the other token, and one that may not be drawn (−1: none). Where nothing else is possible the
    forbidden token is drawn all the same.
    """

    drawing: Drawing
    allowed: Tensor | None  # (V,)

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        assert chunk.target is not None
        assert chunk.uniform is not None
        logits = chunk.per_ask(chunk.logits)  # (m, V)
        log_probs = logits - chunk.per_ask(chunk.normaliser)[:, None]
        other, forbidden = chunk.target.unbind(1)  # (m,), (m,)
        usable = torch.ones_like(logits, dtype=torch.bool) if self.allowed is None else self.allowed.expand_as(logits)
        without = usable.scatter(1, forbidden.clamp(min=0)[:, None], False)
        forbids = (forbidden >= 0) & (without & (logits > -torch.inf)).any(1)
        law = law_of(chunk, self.drawing, torch.where(forbids[:, None], without, usable))
        token = sample(law, chunk.uniform)
        return {
            "token": token,
            "law": law.gather(1, token[:, None])[:, 0],  # NaN where there is none, which the engine refuses
            "log_prob": log_probs.gather(1, token[:, None])[:, 0],
            "target": log_probs.gather(1, other[:, None])[:, 0],
        }
