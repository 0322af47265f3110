"""A law, a rate and a replacement: all there is to say about how passages are corrupted, as one function.

Knows what is hidden, shown and asked. Knows no network, no padding and no batch: the answer for a passage is a function
of (its tokens, its draw, the seed, progress), whatever stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from besag.arrays import Bools, Floats, Ints
from besag.checks import is_number, whole_number
from besag.errors import BesagError, quoted
from besag.masks.law import MaskLaw
from besag.masks.passages import Passages
from besag.masks.rates import Rate
from besag.masks.replacement import Replacement
from besag.masks.units import budget, take_tokens, uniform_turns
from besag.noise import Training

_COPY = 32  # noise reads the lower 32 bits of a draw; those above number the copies of a passage


class Corrupted(NamedTuple):
    inputs: Ints  # (T,) what is shown
    hidden: Bools  # (T,) chosen by the law
    asked: Bools  # (T,) to be predicted: hidden, and drawn for it
    rate: Floats  # (R,) the share of each passage that was to be hidden


@dataclass(frozen=True)
class Masking:
    law: MaskLaw
    rate: Rate
    replacement: Replacement
    predict: float = 1.0  # of the hidden tokens of a passage, the share that is asked (at least one token)

    def __post_init__(self) -> None:
        if not is_number(self.predict) or not 0 < self.predict <= 1:
            raise BesagError(
                f"predict is {quoted(self.predict)}: it is a share of the hidden tokens, above 0 and at most 1."
            )

    def __call__(self, passages: Passages, progress: float, seed: int) -> Corrupted:
        rate = self.rate.at(progress, passages.draw, seed)  # (R,)
        hidden = self._hidden(passages, rate, progress, seed)
        asked = hidden
        if self.predict < 1:
            among = passages._replace(free=hidden)
            count = budget(among, np.full(len(rate), self.predict), seed, Training.ASKED_ROUNDING)
            asked = take_tokens(among, uniform_turns(among, seed, Training.ASKED), count)
        return Corrupted(self.replacement(passages, hidden, seed), hidden, asked, rate)

    @staticmethod
    def copies(passages: Passages, count: int) -> Passages:
        """The same passages `count` times, one whole set after the other; no token is hidden in two of its copies.

        So count × rate of the tokens are predicted while only rate of them are missing: a prediction rate above the
        corruption rate (Wettig et al. 2023). Which copy a passage is stands in its draw, above the bits noise reads. A
        copy is masked as if those before it had been: it need not stand beside them. A passage of fewer tokens than
        copies has none left for the last of them.
        """
        whole_number(count, "copies", right="a passage stands in its batch at least once", most=1000)
        rows, copy = len(passages.draw), np.arange(count)
        repeated = passages._replace(**{name: np.tile(part, count) for name, part in passages._asdict().items()})
        return repeated._replace(
            row=repeated.row + np.repeat(copy * rows, len(passages.row)),
            draw=repeated.draw + (np.repeat(copy, rows) << _COPY),
        )

    def _hidden(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        copy = passages.draw >> _COPY  # (R,)
        count, most = int(copy.max(initial=0)) + 1, float(rate.max(initial=0.0))
        if count > 1 and count * most > 1 + 1e-9:
            raise BesagError(
                f"{count} copies with a rate of up to {most:g} would hide {count * most:g} of each passage: they hide "
                "disjoint shares, so copies × rate can be at most 1"
            )
        whole = passages
        if len(whole.always):  # hidden beside what the law hides of the rest
            passages = whole._replace(free=whole.free & ~whole.always)
        hidden = self.law.choose(passages, rate, progress, seed)
        spent = hidden
        for turn in range(1, int(copy.max(initial=0)) + 1):
            # what copies before this one hid is not free in it, and the same number of tokens comes from the rest
            rest = passages._replace(free=passages.free & ~spent)
            share = rate * passages.sizes / np.maximum(rest.sizes, 1)
            now = self.law.choose(rest, np.minimum(share, 1.0), progress, seed + (turn << _COPY))
            hidden = np.where((copy == turn)[passages.row], now, hidden)
            spent = spent | now
        return hidden | (whole.always & (copy == 0)[whole.row]) if len(whole.always) else hidden
