"""What stands where a token was hidden: the mask, a random token, or the token itself.

Devlin et al. 2019 show 80 % of hidden tokens as the mask, 10 % as a random token and 10 % as they are. The default here
is the mask alone, which is never worse at high rates (Wettig et al. 2023) and keeps the network a conditional law.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from besag import noise
from besag.arrays import Bools, Ints
from besag.checks import is_number
from besag.errors import BesagError, quoted
from besag.masks.passages import Passages
from besag.noise import Training

PER = ("token", "word", "run")


@dataclass(frozen=True, eq=False)
class Replacement:
    mask_id: int
    mask: float = 1.0  # shares of the hidden tokens
    random: float = 0.0
    keep: float = 0.0
    ordinary: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # what a random token may be; any ids
    per: Literal["token", "word", "run"] = "token"  # what is shown in one way: a token, a word, hidden neighbours

    def __post_init__(self) -> None:
        object.__setattr__(self, "ordinary", np.asarray(self.ordinary, dtype=np.int64))
        shares = {"mask": self.mask, "random": self.random, "keep": self.keep}
        said = ", ".join(f"{name} {quoted(share)}" for name, share in shares.items())
        if not all(map(is_number, shares.values())) or min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 1e-6:
            raise BesagError(f"what hidden tokens are shown as must be shares that sum to 1, not {said}.")
        if self.random > 0 and not len(self.ordinary):
            raise BesagError(f"{said}: random tokens need the ids they may be.")
        if self.per not in PER:
            raise BesagError(f"a replacement is drawn per {', '.join(PER)}, not per {quoted(self.per)}.")

    def __call__(self, passages: Passages, hidden: Bools, seed: int) -> Ints:
        """(T,) the ids that are shown."""
        at = np.flatnonzero(hidden)
        inputs = passages.ids.copy()
        inputs[at] = self.mask_id
        if self.mask >= 1:
            return inputs
        draw, place = passages.draw[passages.row[at]], passages.place[at]
        kind = noise.uniform(seed, Training.REPLACEMENT_KIND, draw, place[self._speaker(passages, at)])
        kept, changed = kind < self.keep, kind >= 1 - self.random
        inputs[at[kept]] = passages.ids[at[kept]]
        which = noise.uniform(seed, Training.REPLACEMENT_TOKEN, draw[changed], place[changed])
        inputs[at[changed]] = self.ordinary[(which * len(self.ordinary)).astype(np.int64)]
        return inputs

    def _speaker(self, passages: Passages, at: Ints) -> Ints:
        """(n,) for each hidden token, the one of them whose noise decides how it is shown."""
        number = np.arange(len(at))
        if self.per == "token" or not len(at):
            return number
        row, word = passages.row[at], passages.word[at]
        new = row[1:] != row[:-1]
        new |= (word[1:] != word[:-1]) if self.per == "word" else (at[1:] != at[:-1] + 1)
        first: Ints = np.maximum.accumulate(np.where(np.append(True, new), number, 0))
        return first


def ordinary_ids(size: int, special: Iterable[int]) -> Ints:
    """All ids below `size` that are no special tokens."""
    return np.setdiff1d(np.arange(size), np.fromiter(special, dtype=np.int64))
