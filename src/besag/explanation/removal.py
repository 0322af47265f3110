"""What it is to leave a token out: a few variants of the text, and how much each of them counts.

    p(y | x without x_i) = Σ_r w_r p(y | variant r),     Σ_r w_r = 1

Knows token ids. Refuses to know what is predicted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from besag.arrays import Floats, Ints
from besag.engine import Engine
from besag.registry import Named, Registry


class Without(NamedTuple):
    """A text of L tokens without each of its n explained tokens, as R variants of one length."""

    ids: Ints  # (R, L) or (R, L − 1)
    targets: Ints  # (R, m) where the m predicted places stand in each variant
    which: Ints  # (R,) the explained token that is left out, counted from 0
    weight: Floats  # (R,) sums to 1 over the variants of each
    lost: float = 0.0  # mass of replacements that were not tried, mean over the tokens


@dataclass(frozen=True)
class Removal(Named, ABC):
    """Subclass, decorate with `@REMOVALS.register`, and it is in Python and on the command line."""

    formula: ClassVar[str]
    passes: ClassVar[str]  # sequences for n explained tokens

    @abstractmethod
    def without(self, engine: Engine, shown: Ints, places: Ints, targets: Ints) -> Without:
        """The text `shown` (L,) without the token at each of `places` (n,); a mask stands at `targets` (m,)."""


REMOVALS: Registry[type[Removal]] = Registry("way to explain")


def hidden(engine: Engine, shown: Ints, places: Ints) -> Ints:
    """(n, L) the text with the mask at each place in turn."""
    copies = np.repeat(shown[None], len(places), 0)
    copies[np.arange(len(places)), places] = mask_of(engine)
    return copies


def mask_of(engine: Engine) -> int:
    mask = engine.conditionals.vocabulary.mask_id
    assert mask is not None  # a model without one does not see both sides, and is refused
    return mask
