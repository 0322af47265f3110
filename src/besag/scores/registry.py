"""What a scoring method is: its fields are its options, `plan` its mathematics, and it says what its number means."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from besag.checks import checked
from besag.registry import Named, Registry
from besag.scores.passage import Passage, ScorePlan

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

    @property
    def ranks(self) -> bool:
        """Is each place asked exactly once, so that its rank and entropy mean something?"""
        return True


METHODS: Registry[type[Method]] = Registry("scoring method")
register = METHODS.register


@checked
def method(name: str, **options: object) -> Method:
    """The method of that name or alias, with its options set; a wrong one is answered with the nearest right one."""
    return METHODS.find(name)(**options)
