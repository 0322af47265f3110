"""Whatever has a name that a user may write: scores, joints, laws of masks, objectives, kernels.

A name alone means the first kind that has it. Where two share one, `mask:whole_word` or `kernel:spindle` says which.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, NamedTuple

from besag.errors import BesagError, nearest
from besag.registry import Registry

KINDS = ("score", "joint", "mask", "objective", "kernel")
TITLED = ("score", "joint", "kernel")  # those that say themselves what they are, and whom they owe it to


class Named(NamedTuple):
    kind: str  # one of KINDS
    what: Any  # the class

    @property
    def name(self) -> str:
        return str(self.what.name)

    @property
    def cites(self) -> tuple[str, ...]:
        """Keys of besag.references."""
        if self.kind in TITLED:
            return tuple(self.what.cite)
        return (self.what.cites,) if self.what.cites else ()

    @property
    def explanation(self) -> str:
        """What its file says of it."""
        return inspect.getdoc(sys.modules[self.what.__module__]) or ""

    @property
    def title(self) -> str:
        if self.kind in TITLED:
            return str(self.what.title)
        return self.explanation.partition("\n")[0].rstrip(".")


def registry(kind: str) -> Registry[Any]:
    if kind == "score":
        import besag.joints  # noqa: F401 (registers scores that need a joint)
        from besag.scores import METHODS

        return METHODS
    if kind == "joint":
        from besag.joints import CONSTRUCTIONS

        return CONSTRUCTIONS
    if kind == "mask":
        from besag.masks import LAWS

        return LAWS
    if kind == "kernel":
        from besag.samplers import KERNELS

        return KERNELS
    from besag.training.objectives import OBJECTIVES

    return OBJECTIVES


def every(kind: str) -> list[Named]:
    return [Named(kind, what) for what in registry(kind).values()]


def all_of(name: str) -> list[Named]:
    """Everything of that name, the likeliest meaning first; nothing where there is none."""
    kind, colon, rest = name.partition(":")
    kinds, bare = ((kind,), rest) if colon and kind in KINDS else (KINDS, name)
    found = []
    for one in kinds:
        known = registry(one)
        what = known.get(known.aliases.get(bare, bare))
        found += [Named(one, what)] if what is not None else []
    return found


def find(name: str, also: tuple[str, ...] = ()) -> Named:
    """The thing of that name, or an error with the nearest one; `also` are further names that would be right."""
    found = all_of(name)
    if not found:
        known = [known for kind in KINDS for known in (*registry(kind), *registry(kind).aliases)]
        guess = nearest(name.partition(":")[2] or name, [*known, *also])
        raise BesagError(f"there is no score, joint, law of masks, objective or kernel {name!r}.{guess}")
    return found[0]
