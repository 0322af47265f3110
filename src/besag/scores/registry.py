"""What a scoring method is: its fields are its options, `plan` its mathematics, and it says what its number means."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from besag.errors import BesagError, nearest
from besag.scores.passage import Passage, Scoring

FIXED_LENGTH = "token sequences of this length"


@dataclasses.dataclass(frozen=True)
class Method(ABC):
    """Subclass, decorate with `@register`, and it is in the Python API, the command line and the documentation."""

    name: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]
    passes: ClassVar[str]  # forward passes for n tokens
    normalised: ClassVar[str] = ""  # "" when the number is no probability, else a probability over what
    bound: ClassVar[bool] = False  # the number bounds that log-probability from below
    sees: ClassVar[Literal["both", "left"]] = "both"
    cite: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def plan(self, passage: Passage) -> Scoring:
        """Ask what is needed and fold the answers into one number a place."""

    @property
    def ranks(self) -> bool:
        """Is each place asked exactly once, so that its rank and entropy mean something?"""
        return True


METHODS: dict[str, type[Method]] = {}
ALIASES: dict[str, str] = {}


def register(method: type[Method]) -> type[Method]:
    METHODS[method.name] = method
    ALIASES.update(dict.fromkeys(method.aliases, method.name))
    return method


def method(name: str, **options: object) -> Method:
    """The method of that name or alias, with its options set; a wrong one is answered with the nearest right one."""
    known = METHODS.get(ALIASES.get(name, name))
    if known is None:
        raise BesagError(
            f"there is no scoring method {name!r}.{nearest(name, [*METHODS, *ALIASES])} Methods: {', '.join(METHODS)}"
        )
    fields = [field.name for field in dataclasses.fields(known)]
    for option in options:
        if option not in fields:
            takes = f"it takes {', '.join(fields)}" if fields else "it takes no options"
            raise BesagError(f"the method {known.name!r} has no option {option!r}: {takes}.{nearest(option, fields)}")
    return known(**options)
