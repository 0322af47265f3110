"""Augmentation: texts like a given one, by hiding words one after the other and filling them again.

A move hides a word (or `together` words), draws their tokens given the rest, from left to right, and keeps what comes
of it only if the text is still like the original x⁰:

    x'_K ~ p(x_K | x_∖K),   accepted iff x' ∈ A = { similarity(x', x⁰) ≥ s, x' reads back as the same tokens and words }

A round moves max(1, ⌊share · words⌉) of the words, each once, in random order. Where the vocabulary does not set words
apart by spaces (residues, atoms, Chinese) each token counts as a word. A refused move leaves the text as it is; so if
the conditionals belong to a joint law and the original word may come back (`other=False`), p restricted to A is
invariant under every move. A few rounds from x⁰ are no sample of it and are not meant to be: they stay near the text.

The similarity is the cosine of mean final states (`states.py`): the network's own idea of likeness, high for any two
texts on one subject and blind to a negation. A measure of your own is a function of two texts. An exact law has no
states: there it is the share of equal tokens.

`log_prob_change` adds log p(new words | rest) − log p(old words | rest) over accepted moves. With a joint law it is
log p(x') − log p(x⁰), whatever the path; with a network it depends on the path.

Every text and copy is a plan of its own with noise from (seed, number of the text, number of the copy), so the engine
pools them and neither batches nor neighbours change a draw. Copies of one text are to differ: one that says what an
earlier one says is drawn again with other noise, a few times, and then given up with a status (`distinct=False` keeps
what was drawn first: independent draws of one law). Not to be confused with paraphrase: the model knows what
may stand there, not what the text means, and words that a label hangs on are yours to keep (`keep`).
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from besag import noise
from besag.arrays import Floats, Ints
from besag.checks import MOST_COPIES, MOST_PLACES, checked, is_number, whole_number
from besag.conditionals.contract import Conditionals, require_both_sides
from besag.engine import Answers, Engine, Plan, Request
from besag.errors import BesagError, quoted
from besag.noise import Sampling
from besag.places.filling import filled
from besag.places.positions import Position, TokenisedText, all_places, position_list, tokens_of
from besag.places.reading import read
from besag.reductions import Chunk
from besag.results.status import Status
from besag.results.words import counted, dtype_name, number
from besag.samplers.drawing import COLDEST, Drawing, law_of, sample
from besag.samplers.editing.augmented import Augmentation, Augmented, Change
from besag.samplers.editing.states import RANDOM, WithStates, ask_mean, common, cosine, has_states
from besag.samplers.sheet import allowed_tokens
from besag.vocabulary import Encoded

Measure: TypeAlias = Callable[[str, str], float]

LETTER = re.compile(r"\w")
MOST_ROUNDS = 1000
ATTEMPTS = 8  # to make a copy that says something else than those before it


@checked
def augment(engine: Engine, texts: str | Sequence[str], **options: Any) -> Augmentation:
    """Changed copies of a text or of several; the options are those of `Augmenting`.

    Noise belongs to the seed, the number of the text in the list (from 0) and the number of the copy: the same text at
    another place of the list is changed otherwise, and `texts[5:]` does not give the last rows of `texts`. (`besag
    augment --skip` does: it counts the rows of its input.)

    Each row counts its own forward passes. Where likeness is that of a network's states, the call spends 16 more on
    random texts, once for all rows: `passes` of the result counts all. What two copies ask alike at the same time is
    run once, and counted for each.
    """
    how = Augmenting(**options)
    if not isinstance(texts, Iterable):
        raise BesagError(f"augment({quoted(texts)}): give a text or a list of texts")
    rows = tuple(how.run(engine, [texts] if isinstance(texts, str) else texts))
    conditionals = engine.conditionals
    dtype = dtype_name(conditionals.dtype)
    shared = RANDOM if how.measures_states(conditionals) else 0
    return Augmentation(rows, how.guard(conditionals), how.seed, conditionals.name, dtype, shared)


@dataclass(frozen=True)
class Augmenting:
    """The options, checked; `run` streams over any number of texts in constant memory."""

    copies: int = 1  # of each text
    share: float = 0.3  # of the words that may change, in a round
    rounds: int = 1
    together: int = 1  # words hidden at a time
    keep: Sequence[Position] = ()  # what stays, in every text that has it
    similarity: float | None = 0.9  # the least similarity to the original; None: no guard
    measure: Measure | None = None  # (original, text) → similarity; None: the model's own
    other: bool = True  # the original word may not come back
    distinct: bool = True  # a copy that says what another says is drawn again
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in (("copies", MOST_COPIES), ("rounds", MOST_ROUNDS), ("together", MOST_PLACES)):
            whole_number(getattr(self, name), name, most=most)
        if not is_number(self.share) or not 0 < self.share <= 1:
            raise BesagError(f"share={self.share!r}: the share of words to change is above 0 and at most 1")
        position_list("keep", self.keep)
        if self.similarity is not None and not (is_number(self.similarity) and abs(self.similarity) <= 1 / COLDEST):
            told = "give the least similarity to accept, or None for none"
            raise BesagError(f"similarity={quoted(self.similarity)}: {told}")
        if self.measure is not None and not callable(self.measure):
            raise BesagError(f"measure={self.measure!r}: give a function of two texts, or None for the model's own")
        Drawing(self.temperature, self.top_k, self.top_p)

    def measures_states(self, conditionals: Conditionals) -> bool:
        """Is likeness that of the network's states?"""
        return self.measure is None and has_states(conditionals)

    def guard(self, conditionals: Conditionals) -> str:
        """What the similarity is, in words."""
        if self.measure is not None:
            what = "by the measure given"
        else:
            what = "cosine of mean states" if has_states(conditionals) else "share of equal tokens"
        return f"similarity: {what}" + ("" if self.similarity is None else f", at least {self.similarity:g}")

    def run(self, engine: Engine, texts: Iterable[str], first: int = 0) -> Iterator[Augmented]:
        """The copies in order, each as soon as it and all before it are there.

        `first` is the number of the first text: with the texts from the sixth on and `first=5`, the rows are those that
        all the texts would have given from there on.
        """
        conditionals = engine.conditionals
        require_both_sides(conditionals)
        budget = engine.batch_tokens if engine.measured else None
        work = Engine(WithStates(conditionals), batch_tokens=budget, progress=engine.progress)
        drawing = Drawing(self.temperature, self.top_k, self.top_p)
        refill = Refill(drawing, allowed_tokens(conditionals))
        centre = common(work) if self.measures_states(conditionals) else None
        waiting: deque[_Copy] = deque()  # copies whose rows have not come back yet

        def plans() -> Iterator[Plan[Augmented]]:
            for at, text in enumerate(texts, first):
                encoded = read(conditionals.vocabulary, text, lenient=True)
                words = movable(conditionals, text, encoded, self.keep)
                for copy in range(self.copies):
                    waiting.append(_Copy(self, conditionals, refill, centre, encoded, words, at, copy))
                    yield waiting[-1].plan()

        found: list[Augmented] = []  # of the text at the front
        for row in work.run(plans(), len(texts) * self.copies if isinstance(texts, Sequence) else None):
            found.append(row)
            if len(found) == self.copies:
                copies = [waiting.popleft() for _ in found]
                yield from _different(work, copies, found) if self.distinct else found
                found = []


@dataclass(frozen=True, eq=False)
class _Copy:
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


def _different(work: Engine, copies: Sequence[_Copy], rows: Sequence[Augmented]) -> Iterator[Augmented]:
    """The copies of one text, each with a text of its own: one that says what an earlier one says is drawn again.

    So a copy depends on those before it and on none after it. One that has nothing new to say after ATTEMPTS says that.
    """
    said: set[str] = set()
    for copy, first in zip(copies, rows, strict=True):
        row, attempt = first, 1
        while first.status == Status.OK and (row.status != Status.OK or row.text in said) and attempt < ATTEMPTS:
            [again] = work.run([replace(copy, attempt=attempt).plan()])
            row, attempt = again._replace(passes=row.passes + again.passes), attempt + 1
        if first.status == Status.OK and (row.status != Status.OK or row.text in said):
            reason = f"{counted(ATTEMPTS, 'new text')} said what other copies say, or could not be taken"
            row = first._replace(
                text=first.original, changed=(), similarity=1.0, log_prob_change=0.0, passes=row.passes,
                status=Status.REPEATED, reason=reason,
            )  # fmt: skip
        elif row.status == Status.OK:
            said.add(row.text)
        yield row


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
