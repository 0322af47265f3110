"""All that has a name, as data: what `besag methods` prints, and what names and options are checked against.

The file beside this one holds what the registries say, so that a typo is answered at once: to ask the registries
themselves takes torch, which takes seconds. After a change of a name, a title, a formula or an option of theirs,

    python -m besag.cli.cataloguing

writes it anew; a test compares the two. A name alone means the first kind that has it. Where two share one,
`mask:whole_word` or `kernel:spindle` says which.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import besag
from besag.errors import BesagError, nearest
from besag.registry import NEEDED, Accepts, Option

FILE = Path(__file__).with_name("catalogue.json")
PACKAGE = Path(besag.__file__).parent
KINDS = {  # kind → (one of them in words, for messages; in a sentence)
    "score": ("scoring method", "a score"),
    "joint": ("joint construction", "a joint"),
    "mask": ("law of masks", "a law of masks"),
    "objective": ("objective", "an objective"),
    "kernel": ("kernel", "a kernel"),
    "explanation": ("way to explain", "a way to explain"),
    "suite": ("suite", "a suite"),
    "experiment": ("experiment", "an experiment"),
}


class Entry(NamedTuple):
    """One of them."""

    kind: str  # of KINDS
    name: str
    title: str
    line: Mapping[str, str]  # its row of the list: column → cell
    facts: Mapping[str, str]  # what more is said of it alone
    cite: tuple[str, ...]
    aliases: tuple[str, ...]
    options: tuple[Option, ...]
    file: str  # within the package

    @property
    def what(self) -> str:
        """In messages: "the kernel 'gibbs'"."""
        return f"the {KINDS[self.kind][0]} {self.name!r}"

    @property
    def explanation(self) -> str:
        """What its file says of it, read and not imported."""
        told = ast.get_docstring(ast.parse((PACKAGE / self.file).read_text(encoding="utf-8")))
        return inspect.cleandoc(told or "")


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Everything, in the order of the registries."""
    return tuple(_entry(one) for one in json.loads(FILE.read_text(encoding="utf-8")))


def every(kind: str) -> list[Entry]:
    return [one for one in entries() if one.kind == kind]


def known(kind: str, name: str) -> Entry:
    """The one of this kind that a name or an alias means; a wrong one is answered with the nearest right one."""
    own = every(kind)
    for one in own:
        if name == one.name or name in one.aliases:
            return one
    names = [one.name for one in own]
    guess = nearest(name, [*names, *(alias for one in own for alias in one.aliases)])
    raise BesagError(f"there is no {KINDS[kind][0]} {name!r}.{guess} There are: {', '.join(names)}")


def all_of(name: str) -> list[Entry]:
    """Everything of that name, the likeliest meaning first; nothing where there is none."""
    kind, colon, rest = name.partition(":")
    kinds, bare = ((kind,), rest) if colon and kind in KINDS else (tuple(KINDS), name)
    return [one for one in entries() if one.kind in kinds and (bare == one.name or bare in one.aliases)]


def find(name: str, also: tuple[str, ...] = ()) -> Entry:
    """The thing of that name, or an error with the nearest one; `also` are further names that would be right."""
    found = all_of(name)
    if not found:
        names = [known for one in entries() for known in (one.name, *one.aliases)]
        guess = nearest(name.partition(":")[2] or name, [*names, *also])
        raise BesagError(
            f"there is no score, joint, law of masks, objective, kernel, way to explain, suite or experiment {name!r}."
            f"{guess}"
        )
    return found[0]


def _entry(data: dict[str, Any]) -> Entry:
    own = tuple(map(_option, data["options"]))
    return Entry(**{**data, "cite": tuple(data["cite"]), "aliases": tuple(data["aliases"]), "options": own})


def _option(data: dict[str, Any]) -> Option:
    accepts = Accepts(tuple(data["words"]), tuple(data["kinds"]))
    return Option(data["name"], accepts, data.get("default", NEEDED), data["meaning"])
