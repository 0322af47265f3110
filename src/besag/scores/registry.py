"""What a scoring method is: its fields are its options, `plan` its mathematics, and it says what its number means."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from besag.checks import checked
from besag.registry import Named, Registry
from besag.scores.passage import Passage, ScorePlan

ENDS = 2  # special tokens around the text of a window
FIXED_LENGTH = "token sequences of this length"


@dataclasses.dataclass(frozen=True)
class Method(Named, ABC):
    """Subclass, decorate with `@register`, and it is in the Python API, the command line and the documentation."""

    formula: ClassVar[str]
    passes: ClassVar[str]  # forward passes for n tokens
    normalised: ClassVar[str] = ""  # "" when the number is no probability, else a probability over what
    bound: ClassVar[bool] = False  # the number bounds that log-probability from below
    sees: ClassVar[Literal["both", "left"]] = "both"

    @abstractmethod
    def plan(self, passage: Passage) -> ScorePlan:
        """Ask what is needed and fold the answers into one number a place."""

    @abstractmethod
    def cost(self, n: int, length: int) -> int:
        """Return the most tokens that one text of n tokens runs through the network, in sequences of `length` tokens.

        `length` counts special tokens and a source. It is below n where the text is longer than the model sees.
        """

    @property
    def ranks(self) -> bool:
        """Is each place asked exactly once, so that its rank and entropy mean something?"""
        return True


def windows(n: int, length: int) -> int:
    """Return how many windows of `length` tokens, overlapping by half, show all of n tokens."""
    return 1 if n <= length else 1 + -(-n // max(1, (length - ENDS) // 2))


METHODS: Registry[type[Method]] = Registry("scoring method")
register = METHODS.register


@checked
def method(name: str, **options: object) -> Method:
    """The method of that name or alias, with its options set; a wrong one is answered with the nearest right one."""
    return METHODS.find(name)(**options)
