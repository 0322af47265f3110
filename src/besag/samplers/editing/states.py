"""What a network makes of a whole text: its final hidden states, averaged over the tokens, none of them hidden.

    v(x) = mean_i h_i(x) − mean over random texts of the same,     similarity(x, y) = cos(v(x), v(y))

The states of a network share a large part, so that without the second term any two texts are alike (cosines of 0.8 and
above between unrelated sentences). Random texts are tokens drawn uniformly, always the same ones.

The engine knows logits only. `WithStates` wraps conditionals so that a question with the context "states" is answered
by the rows before the head; everything else is answered as before, so both kinds pool in one engine.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from besag import noise
from besag.arrays import Floats, Ints
from besag.conditionals.contract import Conditionals, Questions
from besag.conditionals.wrapping import Wrapping
from besag.engine import Answers, Engine, Plan, Request
from besag.errors import BesagError
from besag.joints.candidates import outcome_ids
from besag.noise import Sampling
from besag.reductions import Chunk

STATES = "states"
RANDOM = 16  # random texts, and tokens of each


def has_states(conditionals: Conditionals) -> bool:
    """Is there a network behind it? An exact law has no hidden states."""
    return getattr(conditionals, "model", None) is not None


class WithStates(Wrapping):
    """The same conditionals, which answer with final hidden states instead of logits where they are asked to.

    The engine passes each batch through `rows` and at once through `head`, so `head` answers as `rows` was asked.
    """

    def __init__(self, inner: Conditionals) -> None:
        super().__init__(inner, inner.name)
        self._states = False

    def rows(self, questions: Questions) -> Tensor:
        self._states = STATES in questions.context
        rest = {name: part for name, part in questions.context.items() if name != STATES}
        return self.inner.rows(questions._replace(context=rest))

    def head(self, rows: Tensor) -> Tensor:
        return rows if self._states else self.inner.head(rows)


@dataclass(frozen=True)
class _Keep:
    """The rows as they are."""

    def __call__(self, chunk: Chunk) -> Mapping[str, Tensor]:
        return {STATES: chunk.per_ask(chunk.logits)}


KEEP = _Keep()


def ask_mean(ids: Ints, places: Ints) -> Generator[Request, Answers, Floats]:
    """(H,) the mean of the final states at some places of one or more sequences (N, L): N passes."""
    row, place = np.repeat(np.arange(len(ids)), len(places)), np.tile(places, len(ids))
    answers = yield Request((KEEP,), ids, row, place, context={STATES: np.ones((len(ids), 1), np.int64)})
    mean = np.asarray(answers[STATES].astype(np.float64).mean(0))
    if not np.isfinite(mean).all():  # with it every similarity would be NaN, and every copy refused
        raise BesagError("the network's final states are infinite: they overflow its precision (try dtype='float32')")
    return mean


def common(engine: Engine) -> Floats:
    """(H,) what the mean states of all texts share, of an engine on `WithStates`: RANDOM passes."""
    conditionals = engine.conditionals
    vocabulary = conditionals.vocabulary
    [blank] = vocabulary.encode([" ".join([str(vocabulary.mask_token)] * RANDOM)])
    tokens, places = outcome_ids(conditionals, "text"), blank.places
    height = noise.uniform(0, Sampling.START, np.arange(RANDOM)[:, None], 0, places)  # (R, n)
    ids = np.tile(blank.ids, (RANDOM, 1))  # (R, L)
    ids[:, places] = tokens[(height * len(tokens)).astype(np.int64)]

    def plan() -> Plan[Floats]:
        return (yield from ask_mean(ids, places))

    return next(engine.run([plan()]))


def cosine(one: Floats, other: Floats) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
