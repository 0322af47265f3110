"""`--set name=value`: how the options of a method, a construction or a kernel are said on the command line.

A value is read as the option's declared type says. Where a command takes several methods, `--set order=random` is for
all that have such an option, `--set chain.order=random` for one. Names and options are checked against the catalogue,
so a wrong one is refused before a model is loaded, and before torch is.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from besag.cli import options as o
from besag.cli.catalogue import Entry, every, known
from besag.errors import BesagError, nearest
from besag.registry import Option, refuse_unfit

if TYPE_CHECKING:
    from besag.joints import Construction
    from besag.scores import Method

Settings = dict[str, dict[str, Any]]  # name → its options


def settings(
    kind: str, names: Sequence[str], given: Sequence[str] | None, shorthands: Mapping[str, Any] | None = None
) -> Settings:
    """What --set says of each of the named; `shorthands` are options that have a flag of their own (None: not given).

    >>> settings("score", ["pll", "sentence_l2r"], ["order=random"])
    {'pll': {}, 'chain': {'order': 'random'}}
    """
    chosen: dict[str, Entry] = {}
    for name in names:
        one = known(kind, name)
        if one.name in chosen:
            raise BesagError(f"--method {name!r} is there twice (it is {one.name!r})")
        chosen[one.name] = one
    found: Settings = {name: {} for name in chosen}
    for said in given or ():
        place, equals, value = said.partition("=")
        if not equals or not place:
            raise BesagError(f"--set {said!r}: write NAME=VALUE, such as temperature=0.8")
        holder, dot, bare = place.partition(".")
        own = [_addressed(kind, holder, chosen, said)] if dot else list(chosen.values())
        _put(found, own, bare if dot else place, functools.partial(read, written=value), f"--set {said}")
    for name, value in (shorthands or {}).items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            _put(found, list(chosen.values()), name, functools.partial(_given, value=value), flag)
    for name, entry in chosen.items():
        refuse_unfit(entry.what, entry.options, found[name])
    return found


def _given(option: Option, value: Any) -> Any:
    return value


def _addressed(kind: str, name: str, chosen: Mapping[str, Entry], said: str) -> Entry:
    one = known(kind, name)
    if one.name not in chosen:
        raise BesagError(f"--set {said!r} is about {one.name!r}, and this runs {', '.join(chosen)}")
    return one


def _put(found: Settings, entries: Sequence[Entry], name: str, value: Callable[[Option], Any], said: str) -> None:
    """Set an option of all that have it; one that none has is an error."""
    takers = [(one, option) for one in entries for option in one.options if option.name == name]
    if not takers:
        _refuse(entries, name, said)
    for one, option in takers:
        if name in found[one.name]:
            raise BesagError(f"{said}: {name} is set twice")
        found[one.name][name] = value(option)


def _refuse(entries: Sequence[Entry], name: str, said: str) -> None:
    elsewhere = [one.name for one in every(entries[0].kind) if any(option.name == name for option in one.options)]
    if elsewhere:
        raise BesagError(f"{said}: {name} is an option of {', '.join(elsewhere)}, not of {_named(entries)}")
    own = list(dict.fromkeys(option.name for one in entries for option in one.options))
    takes = f"it takes {', '.join(own)}" if own else "it takes no options"
    told = entries[0].what if len(entries) == 1 else f"none of {_named(entries)}"
    has = "has no" if len(entries) == 1 else "has an"
    raise BesagError(f"{said}: {told} {has} option {name!r}: {takes}.{nearest(name, own)}")


def _named(entries: Sequence[Entry]) -> str:
    return ", ".join(one.name for one in entries)


def read(option: Option, written: str) -> Any:
    """The value that is written, by the option's type; what fits no type is left a word, and refused as one."""
    kinds, lower = option.accepts.kinds, written.lower()
    if written in option.accepts.words:
        return written
    if "none" in kinds and lower in ("none", "null"):
        return None
    if "bool" in kinds and lower in ("true", "false"):
        return lower == "true"
    for kind, reader in (("int", int), ("float", float)):
        if kind in kinds:
            try:
                return reader(written)
            except ValueError:
                continue
    if "list" in kinds:
        try:
            return tuple(json.loads(written if written.startswith("[") else f"[{written}]"))
        except ValueError:
            return written
    return written


# ---- as options of a command


@dataclass(frozen=True)
class MethodsOptions:
    """Scoring methods, and what is set of them."""

    method: o.Methods = None
    set_: o.Set = None
    seed: o.Seed = None

    def chosen(self) -> dict[str, Method]:
        """The methods by name. What is wrong is told before anything heavy is imported."""
        wanted = settings("score", self.method or ["pll"], self.set_, {"seed": self.seed})

        from besag.scores import method

        return {name: method(name, **own) for name, own in wanted.items()}


@dataclass(frozen=True)
class ConstructionOptions:
    """One construction of a joint, and what is set of it."""

    method: o.Construction = "ag"
    set_: o.Set = None

    def options(self) -> dict[str, Any]:
        [own] = settings("joint", [self.method], self.set_).values()
        return own


@dataclass(frozen=True)
class ConstructionsOptions:
    """Several of them; all if none is named."""

    method: o.Constructions = None
    set_: o.Set = None

    def options(self) -> Settings:
        return settings("joint", self.method or [one.name for one in every("joint")], self.set_)

    def chosen(self) -> list[Construction]:
        """Those that are named, or all that are usually compared, with what is set; each once."""
        wanted = self.options()

        from besag.joints import construction
        from besag.joints.comparison import usual

        if self.method:
            return [construction(name, **own) for name, own in wanted.items()]
        found = (replace(one, **wanted[one.name]) for one in usual())
        return list({one.label: one for one in found}.values())
