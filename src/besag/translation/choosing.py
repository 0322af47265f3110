"""Which of several targets of a source: by what their own way says, by a score of the model, by another, by risk.

    own       Σ log p / m over the m predictions that led to it (`refinement.py`): as Mask-Predict ranks lengths
    length    (Σ log p + log p(n | s)) / (m + 1): the law of lengths has a say
    METHOD    a score of the translator itself given the source: pll, chain …, a token; with log p(n | s) where the
              model has a law of lengths and the method is a probability of one length
    judge     log p(x, end | s) / (n + 1) of a left-to-right translator, n its tokens
    mbr       the mean utility against all targets of the source, by how often each was found (`utility.py`)

Targets that say the same are one, found so many times. Higher is better everywhere. Knows no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from besag.conditionals.decoder import CausalDecoder
from besag.engine import Engine
from besag.errors import BesagError, nearest, quoted
from besag.scores import METHODS, method
from besag.scores.registry import FIXED_LENGTH
from besag.scores.scoring import score
from besag.scores.source_length import SourceLengths
from besag.translation.left_to_right import forced
from besag.translation.utility import UtilityName, expected

OWN, LENGTH, JUDGE, MBR = "own", "length", "judge", "mbr"


@dataclass(frozen=True)
class Hypothesis:
    """One target that was found for a source."""

    text: str
    score: float | None  # by which it was chosen, the higher the better; None: it was the only one, and tells none
    length: int  # its tokens
    passes: int  # forward passes of the network that were spent on it
    found: int = 1  # how often it was written


@dataclass(frozen=True)
class Choice:
    """How hypotheses are ranked."""

    by: str = OWN
    judge: Any = None  # a `LanguageModel` that translates from the left
    utility: UtilityName = "chrf"

    def __post_init__(self) -> None:
        known = (OWN, LENGTH, JUDGE, MBR, *METHODS)
        if self.by not in known:
            raise BesagError(f"choose={quoted(self.by)}: one of {', '.join(known)}.{nearest(self.by, known)}")
        if (self.by == JUDGE) != (self.judge is not None):
            told = "say which with judge=" if self.judge is None else "say choose='judge'"
            raise BesagError(f"choose={self.by!r} and judge={quoted(getattr(self.judge, 'name', None))}: {told}")
        if self.judge is not None and not isinstance(getattr(self.judge, "conditionals", None), CausalDecoder):
            raise BesagError(
                f"judge={quoted(getattr(self.judge, 'name', self.judge))}: a judge is a loaded left-to-right translator"
            )

    @property
    def meaning(self) -> str:
        """What a score is."""
        told = {
            OWN: "mean log p of what was predicted",
            LENGTH: "mean log p of what was predicted, and of the length",
            JUDGE: f"log p a token of {getattr(self.judge, 'name', '')}",
            MBR: f"expected {self.utility}",
        }
        return told.get(self.by, f"{self.by} a token")

    def rank(
        self, engine: Engine, sources: Sequence[str], found: Sequence[Sequence[Hypothesis]]
    ) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of each source, best first; what is found twice stands once."""
        merged = [_merged(own) for own in found]
        if self.by in (OWN, LENGTH):
            if any(len(own) > 1 and any(one.score is None for one in own) for own in merged):
                raise BesagError(
                    "this kernel does not say how likely its tokens were, so its targets have no score of their own to "
                    "choose by: choose by 'pll', 'mbr' or 'judge'"
                )
            return [_sorted(own) for own in merged]
        scores: list[list[float | None]]
        if self.by == MBR:
            scores = [
                [*expected([one.text for one in own], [one.found for one in own], self.utility)] for own in merged
            ]
        else:
            pairs = [(source, one.text) for source, own in zip(sources, merged, strict=True) for one in own]
            flat = iter(self._judged(pairs) if self.by == JUDGE else _scored(engine, self.by, pairs))
            scores = [[next(flat) for _ in own] for own in merged]
        return [
            _sorted([replace(one, score=value) for one, value in zip(own, values, strict=True)])
            for own, values in zip(merged, scores, strict=True)
        ]

    def _judged(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        return [*forced(self.judge.conditionals, [one for one, _ in pairs], [other for _, other in pairs])]


def _scored(engine: Engine, name: str, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """A token; None where a text cannot be scored."""
    how = method(name)
    lengths = "predicted" if how.normalised == FIXED_LENGTH and _has_lengths(engine) else None
    texts, sources = [text for _, text in pairs], [source for source, _ in pairs]
    told = score(engine, texts, how, lengths=lengths, sources=sources)
    return [one.total / max(1, len(one.tokens)) if one.status == "ok" else None for one in told]


def _has_lengths(engine: Engine) -> bool:
    try:
        SourceLengths(engine)
    except BesagError:
        return False
    return True


def _merged(found: Sequence[Hypothesis]) -> list[Hypothesis]:
    """One for each text: the best score, all passes, how often."""
    texts: dict[str, Hypothesis] = {}
    for one in found:
        before = texts.get(one.text)
        if before is not None:
            better = max(before, one, key=_worth)
            one = replace(better, passes=before.passes + one.passes, found=before.found + one.found)
        texts[one.text] = one
    return [*texts.values()]


def _sorted(found: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    return tuple(sorted(found, key=lambda one: -_worth(one)))


def _worth(one: Hypothesis) -> float:
    return float("-inf") if one.score is None else one.score
