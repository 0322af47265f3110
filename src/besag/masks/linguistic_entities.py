"""One token of each given span, and nothing else: linguistic entity masking (LEM; Fernando and Ranathunga 2025).

Spans are what holds a sentence up (names, nouns, verbs: whatever `passages.span` numbers). They come in random order
until the budget is spent, and of each one token is hidden, all of its tokens with the same chance; so the rest of a
name stays in sight. What is in no span is never hidden: a passage with fewer spans than its budget hides less.

Not to be confused with `entities`, which hides spans whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag.arrays import Bools, Floats
from besag.masks.law import LAWS, MaskLaw
from besag.masks.passages import Passages
from besag.masks.units import budget, gather, take_tokens, uniform_turns
from besag.noise import Training


@LAWS.register
@dataclass(frozen=True)
class LinguisticEntities(MaskLaw):
    name: ClassVar[str] = "linguistic_entities"
    title: ClassVar[str] = "one token of each given span, and nothing else (LEM)"
    cite: ClassVar[tuple[str, ...]] = ("fernando2025",)
    aliases: ClassVar[tuple[str, ...]] = ("lem",)
    spanned: ClassVar[bool] = True

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        spans = gather(passages, passages.span)
        lot = uniform_turns(passages, seed, Training.ENTITY_TOKEN)[spans.token]
        first = np.full(len(spans.size), np.inf)
        np.minimum.at(first, spans.member, lot)  # (U,) the least lot of each span: the token that stands for it
        stands = np.zeros(len(passages.ids), dtype=np.bool_)
        stands[spans.token[lot == first[spans.member]]] = True
        turn = uniform_turns(passages, seed)  # other noise than the lots, or long spans would come first
        return take_tokens(passages._replace(free=stands), turn, budget(passages, rate, seed))
