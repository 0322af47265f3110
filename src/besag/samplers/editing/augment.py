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

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from besag.checks import MOST_COPIES, MOST_PLACES, checked, is_number, whole_number
from besag.conditionals.contract import Conditionals, require_both_sides
from besag.engine import Engine, Plan
from besag.errors import BesagError, quoted
from besag.places.positions import Position, position_list
from besag.places.reading import read
from besag.results.status import Status
from besag.results.words import counted, dtype_name
from besag.samplers.drawing import COLDEST, Drawing
from besag.samplers.editing.augmented import Augmentation, Augmented
from besag.samplers.editing.copying import Copy, Measure, Refill, movable
from besag.samplers.editing.states import RANDOM, WithStates, common, has_states
from besag.samplers.sheet import allowed_tokens

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
        work = work if engine.source is None else work.given(engine.source)
        drawing = Drawing(self.temperature, self.top_k, self.top_p)
        refill = Refill(drawing, allowed_tokens(conditionals))
        centre = common(work) if self.measures_states(conditionals) else None
        waiting: deque[Copy] = deque()  # copies whose rows have not come back yet

        def plans() -> Iterator[Plan[Augmented]]:
            for at, text in enumerate(texts, first):
                encoded = read(conditionals.vocabulary, text, lenient=True)
                words = movable(conditionals, text, encoded, self.keep)
                for copy in range(self.copies):
                    waiting.append(Copy(self, conditionals, refill, centre, encoded, words, at, copy))
                    yield waiting[-1].plan()

        found: list[Augmented] = []  # of the text at the front
        for row in work.run(plans(), len(texts) * self.copies if isinstance(texts, Sequence) else None):
            found.append(row)
            if len(found) == self.copies:
                copies = [waiting.popleft() for _ in found]
                yield from _different(work, copies, found) if self.distinct else found
                found = []


def _different(work: Engine, copies: Sequence[Copy], rows: Sequence[Augmented]) -> Iterator[Augmented]:
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
