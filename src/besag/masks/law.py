"""The law of which places to hide: p(K | x), with everything it depends on as an argument.

A law is a frozen dataclass, its fields its options; `choose` is a pure function. A law that learns from the run (which
tokens are still hard) is `Adaptive`: its table is a plain array that is shown what was predicted, saved and restored.

If p(K | x) looks at the hidden tokens themselves, the network learns p(v | context)·π(v) / Z in place of
p(v | context), with π(v) the chance that v is hidden where it stands. `tilt` says what log π is, so that a score can
take it out again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.masks.passages import NO_TAGS, Passages
from besag.registry import Named, Registry


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a law may know of the corpus before the run."""

    counts: Ints  # (V,) how often each token occurs
    documents: Iterable[Ints]  # token ids without special tokens, document by document; can be gone through anew
    special: frozenset[int]
    tokens: tuple[str, ...]  # (V,) as the tokenizer writes them, for laws whose tables are files of words
    tagged: Ints | None = None  # (V, K) how often each token stands with each of the tags given with the text


@dataclass(frozen=True)
class MaskLaw(Named, ABC):
    spanned: ClassVar[bool] = False  # is it about given spans (entities, errors), and the same as another without?
    tagged: ClassVar[bool] = False  # does it read tags, where they are given with the text?

    def prepare(self, statistics: Statistics) -> Self:
        """The same law with whatever tables it takes from the corpus; most need none."""
        return self

    @abstractmethod
    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        """(T,) which tokens are hidden. `rate` (R,) is the wanted share of each passage, `progress` runs from 0 to 1.

        Never a token that is not free; never more than `budget(passages, rate, seed)` tokens of a passage.
        """

    def tilt(self, rate: float = 0.15) -> Floats | None:
        """(V,) log π(v) up to a constant, at this rate; None where the law does not look at the tokens it hides."""
        return None


class Adaptive(ABC):
    """Mixed into a law that learns from the run. The table is the only thing that changes."""

    @abstractmethod
    def observe(self, ids: Ints, losses: Floats, correct: Bools, tag: Ints = NO_TAGS) -> None:
        """What was predicted in one optimiser step, over all processes: true tokens, losses in nats, was it right; and
        the tags that were given with them, where any were."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]: ...

    @abstractmethod
    def restore(self, state: dict[str, np.ndarray]) -> None: ...


LAWS: Registry[type[MaskLaw]] = Registry("law of masks")
