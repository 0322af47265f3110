"""Things known by name: scoring methods, joint constructions. A wrong name is answered with the nearest right one."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from besag.errors import BesagError, nearest

K = TypeVar("K", bound=type)


class Registry(dict[str, K]):
    """Frozen dataclasses by name; the fields of each are its options."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what  # "scoring method", for messages
        self.aliases: dict[str, str] = {}

    def register(self, kind: K) -> K:
        """A class decorator: from now on the class is known by its `name` and `aliases`."""
        self[kind.name] = kind  # type: ignore[attr-defined]
        self.aliases.update(dict.fromkeys(getattr(kind, "aliases", ()), kind.name))  # type: ignore[attr-defined]
        return kind

    def find(self, name: str) -> K:
        found = self.get(self.aliases.get(name, name))
        if found is None:
            guess = nearest(name, [*self, *self.aliases])
            raise BesagError(f"there is no {self.what} {name!r}.{guess} There are: {', '.join(self)}")
        return found

    def options(self, name: str) -> list[str]:
        return [field.name for field in dataclasses.fields(self.find(name))]

    def refuse_unknown(self, name: str, options: dict[str, object]) -> None:
        own = self.options(name)
        for option in options:
            if option not in own:
                takes = f"it takes {', '.join(own)}" if own else "it takes no options"
                known = self.aliases.get(name, name)
                raise BesagError(f"the {self.what} {known!r} has no option {option!r}: {takes}.{nearest(option, own)}")


ARROWS = {"ab": "a→b", "ba": "b→a"}


def label(method: Any) -> str:
    """The name of a construction (or kernel) and its options that are not the usual ones: "ag marginal"."""
    return " ".join([method.name, *(_option(name, value) for name, value in unusual(method).items())])


def unusual(method: Any) -> dict[str, Any]:
    """The options that were set."""
    values = {field.name: (getattr(method, field.name), field.default) for field in dataclasses.fields(method)}
    return {name: value for name, (value, usual) in values.items() if value != usual}


def _option(name: str, value: object) -> str:
    if value is True:
        return name
    return ARROWS.get(value, value) if isinstance(value, str) else f"{name}={value}"
