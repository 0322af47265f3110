"""Only tokens outside the given error spans: masked fine-tuning of a spelling corrector.

An error stays in sight, so that its correction is learned from what was really written. Of the other tokens a share is
hidden (20 % in Wu et al. 2023), so that the network must read the context and cannot learn the errors by heart. The
budget counts the tokens that are no errors. With pairs in place (`data.pairs`) the correction is asked at every error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from besag.arrays import Bools, Floats
from besag.masks.law import LAWS, MaskLaw
from besag.masks.passages import Passages
from besag.masks.units import budget, take_tokens, uniform_turns


@LAWS.register
@dataclass(frozen=True)
class ErrorAware(MaskLaw):
    name: ClassVar[str] = "error_aware"
    title: ClassVar[str] = "only tokens outside given error spans, for spelling correctors"
    cite: ClassVar[tuple[str, ...]] = ("wu2023",)
    spanned: ClassVar[bool] = True

    def choose(self, passages: Passages, rate: Floats, progress: float, seed: int) -> Bools:
        right = passages._replace(free=passages.free & (passages.span < 0))
        return take_tokens(right, uniform_turns(right, seed), budget(right, rate, seed))
