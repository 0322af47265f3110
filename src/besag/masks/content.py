"""Hard classes of words more often, as the run goes (time-variant content, PTW; Yang, Zhang and Zhao 2023).

Each class c of words has a running mean s(c) of its losses; its weight is σ(2 (s(c) − mean s) / std s). The words of a
passage are shuffled and gone through; a word enters the hidden set with the chance of its class, until the budget is
spent. If it is not spent at the end, those that did not enter have another chance, and so on (`once=True`: they do not,
and a passage may hide less than its budget).

Words are those of the passage; a word has the class of its first token. As published, classes are parts of speech in
context: they are, where tags are given with the text (`passages.tag`), so that one word is now a noun, now a verb.
Without tags they are a table over the vocabulary, and a word has one class wherever it stands: that of a file of lines
token<TAB>class, or one of ten classes by frequency, each a tenth of the corpus. Tokens without a tag or a line are one
more class. The mean and deviation are over the classes seen so far; a class not seen yet has weight ½.

In pass g, at place u of its shuffled order, a word of weight w enters at the turn t = g + u with chance w; so
π = 1 − (1 − w)^⌊t⌋ (1 − w (t − ⌊t⌋)) at the turn t at which budgets end: the tilt, exact for first tokens only. With
tags it is the mean over those that a token has in the corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from besag import noise
from besag.arrays import Bools, Floats, Ints
from besag.errors import BesagError
from besag.masks.law import LAWS, Adaptive, MaskLaw, Statistics
from besag.masks.passages import NO_TAGS, Passages
from besag.masks.tables import by_token, carrying, needed, refuse_unless, shares, sums_by, tilt_of
from besag.masks.units import budget, gather, take
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class Content(MaskLaw, Adaptive):
    name: ClassVar[str] = "content"
    title: ClassVar[str] = "hard classes of words, more often as the run goes (PTW)"
    cite: ClassVar[tuple[str, ...]] = ("yang2023",)
    aliases: ClassVar[tuple[str, ...]] = ("ptw",)
    tagged: ClassVar[bool] = True
    _class: ClassVar[Ints | None] = None  # (V,) the class of each token, where it has one wherever it stands
    _tags: ClassVar[Floats | None] = None  # (V, C) how often it is of which class, where that is given in context
    _share: ClassVar[Floats | None] = None  # (V,)
    _losses: ClassVar[Floats | None] = None  # (C,) s, nan where not seen yet

    classes: Annotated[str | None, "a file token<TAB>class; if none, given tags, or else by frequency"] = None
    decay: Annotated[float, "of the running mean of losses"] = 0.99
    once: Annotated[bool, "go through the words once, and perhaps hide less than the budget"] = False

    def __post_init__(self) -> None:
        refuse_unless(0 <= self.decay < 1, self, "decay", "at least 0 and below 1")

    def prepare(self, statistics: Statistics) -> Self:
        share = shares(statistics)
        if statistics.tagged is not None and self.classes is None:
            tags = _mixed(statistics.counts, statistics.tagged)
            return carrying(self, _tags=tags, _share=share, _losses=np.full(tags.shape[1], np.nan))
        kind = by_frequency(share) if self.classes is None else _given(self.classes, statistics)
        return carrying(self, _class=kind, _share=share, _losses=np.full(int(kind.max()) + 1, np.nan))

    @property
    def weights(self) -> Floats:
        """(C,) the chance of a word of each class to enter when it is its turn."""
        losses = needed(self._losses, self)
        seen = ~np.isnan(losses)
        weights = np.full(len(losses), 0.5)
        spread = float(losses[seen].std()) if seen.any() else 0.0
        if spread > 0:
            weights[seen] = 1 / (1 + np.exp(-2 * (losses[seen] - losses[seen].mean()) / spread))
        return weights

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        draw, place = passages.draw[passages.row], passages.place
        weight = self.weights[self._classes_of(passages.ids, passages.tag)]  # (T,) read at the first token of a word
        order = noise.uniform(seed, Training.CONTENT_ORDER, draw, place)
        entered = np.floor(
            np.log(noise.uniform(seed, Training.CONTENT_PASS, draw, place)) / np.log1p(-weight)
        )  # geometric: 0, 1, …
        unit = passages.word
        if self.once:
            words = gather(passages, unit)
            unit = unit.copy()
            unit[words.token[entered[words.first][words.member] > 0]] = -1
        return take(passages, unit, entered + order, budget(passages, rate, seed))

    def _classes_of(self, ids: Ints, tag: Ints) -> Ints:
        """(T,) by what was given for each token where it stands, or by the token alone."""
        if self._tags is None:
            return needed(self._class, self)[ids]
        if len(tag) != len(ids):
            raise BesagError(
                f"the law {self.name!r} was made for text with tags: {len(ids)} tokens have {len(tag)} of them here"
            )
        return np.where(tag < 0, self._tags.shape[1] - 1, tag)

    def observe(self, ids: Ints, losses: Floats, correct: Bools, tag: Ints = NO_TAGS) -> None:
        table = needed(self._losses, self)
        total, count = sums_by(self._classes_of(ids, tag), losses, len(table))
        seen = count > 0
        mean = total[seen] / count[seen]
        table[seen] = np.where(np.isnan(table[seen]), mean, self.decay * table[seen] + (1 - self.decay) * mean)

    def state(self) -> dict[str, np.ndarray]:
        return {"losses": needed(self._losses, self).copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        needed(self._losses, self)[:] = state["losses"]

    def tilt(self, rate: float = 0.15) -> Floats:
        weight = self.weights  # (C,)

        def chance(turn: float) -> Floats:
            whole = np.floor(turn)
            entered: Floats = 1 - (1 - weight) ** whole * (1 - weight * (turn - whole))
            return entered[needed(self._class, self)] if self._tags is None else self._tags @ entered

        return tilt_of(chance, needed(self._share, self), rate, low=0.0, high=1.0 if self.once else 1000.0)


def by_frequency(share: Floats, classes: int = 10) -> Ints:
    """(V,) 0 for the most frequent tokens, which make up a tenth of all text, and so on to 9."""
    order = np.argsort(-share, kind="stable")
    before = np.cumsum(share[order]) - share[order]  # how much of the text is more frequent tokens
    kind = np.empty(len(share), dtype=np.int64)
    kind[order] = np.minimum(before * classes + 1e-9, classes - 1).astype(np.int64)
    return kind


def _mixed(counts: Ints, tagged: Ints) -> Floats:
    """(V, K + 1) the share of each token's places with each tag, and with none; one never seen: with none."""
    by_class = np.column_stack([tagged, counts - tagged.sum(1)]).astype(np.float64)
    by_class[counts == 0, -1] = 1.0
    share: Floats = by_class / by_class.sum(1, keepdims=True)
    return share


def _given(path: str, statistics: Statistics) -> Ints:
    said = by_token(path, statistics)
    names = {name: number for number, name in enumerate(sorted(set(said.values())))}
    kind = np.full(len(statistics.counts), len(names), dtype=np.int64)
    kind[[*said]] = [names[name] for name in said.values()]
    return kind
