"""Things known by name: scores, constructions of joints, laws of masks, objectives, kernels.

Each says what it is called, what it is, whom it owes it to, and which options it takes. An option stands where it is
declared, a field of a dataclass or a keyword argument, with its type and its meaning:

    order: Annotated[Literal["left-to-right", "random"], "in which order tokens are revealed"] = "left-to-right"

From this alone come the command line, its help, suggestions and the documentation. A wrong name, an unknown option or a
value of another type is refused in the same words, whoever was asked.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import numbers
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from besag.errors import BesagError, nearest, quoted

K = TypeVar("K", bound=type)

NEEDED = object()  # the default of an option that has none
LEAST, LARGEST = -(2**63), 2**64 - 1
ARROWS = {"ab": "a→b", "ba": "b→a"}


class Named:
    """What has a name that a user may write."""

    name: ClassVar[str]
    title: ClassVar[str]  # what it is, in one line
    cite: ClassVar[tuple[str, ...]] = ()  # keys of besag.references
    aliases: ClassVar[tuple[str, ...]] = ()

    @property
    def unusual(self) -> dict[str, Any]:
        """The options that were set."""
        values = {one.name: (getattr(self, one.name), one.default) for one in options(type(self))}
        return {name: value for name, (value, usual) in values.items() if value != usual}

    @property
    def label(self) -> str:
        """The name, and the options that are not the usual ones: "ag marginal"."""
        return " ".join([self.name, *(_set(name, value) for name, value in self.unusual.items())])


def _set(name: str, value: object) -> str:
    if value is True:
        return name
    return ARROWS.get(value, value) if isinstance(value, str) else f"{name}={value}"


# ---- options


class Accepts(NamedTuple):
    """Which values an option takes."""

    words: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()  # of KINDS; "any" is whatever only Python can say

    def __str__(self) -> str:
        return " | ".join([*self.words, *self.kinds])

    @property
    def in_words(self) -> str:
        """As a sentence says it."""
        if not self.kinds:
            return f"one of {', '.join(self.words)}"
        return " or ".join([*(IN_WORDS[kind] for kind in self.kinds), *self.words])

    def takes(self, value: object) -> bool:
        return (isinstance(value, str) and value in self.words) or any(KINDS[kind](value) for kind in self.kinds)

    @classmethod
    def of(cls, hint: Any) -> Accepts:
        """What a type hint says."""
        origin, parts = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return cls.of(parts[0])
        if origin is Literal:
            return cls(words=tuple(map(str, parts)))
        if origin in (Union, types.UnionType):
            each = [cls.of(part) for part in parts]
            return cls(*(tuple(dict.fromkeys(one for part in each for one in part[side])) for side in range(2)))
        plain = {int: "int", float: "float", bool: "bool", str: "str", types.NoneType: "none"}
        if hint in plain:
            return cls(kinds=(plain[hint],))
        listed = isinstance(origin, type) and issubclass(origin, Sequence)
        return cls(kinds=("list" if listed else "any",))


def _is_whole(value: object) -> bool:
    """Of 64 bits at most: with anything longer no array can be asked for, and no noise drawn."""
    return not isinstance(value, bool) and isinstance(value, numbers.Integral) and LEAST <= int(value) <= LARGEST


def _is_number(value: object) -> bool:
    """Finite: there is no temperature, rate or share that is not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _is_list(value: object) -> bool:
    """Several in order, Python's, numpy's or whose ever; the letters of a text are not."""
    ordered = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return ordered and not isinstance(value, str | bytes | bytearray | Mapping) and getattr(value, "ndim", 1) > 0


KINDS: dict[str, Callable[[object], bool]] = {
    "int": _is_whole,
    "float": _is_number,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "none": lambda value: value is None,
    "list": _is_list,
    "any": lambda value: True,
}


IN_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text", "list": "a list",
            "none": "none", "any": "anything"}  # fmt: skip


class Option(NamedTuple):
    name: str
    accepts: Accepts
    default: Any  # NEEDED where there is none
    meaning: str = ""

    def __str__(self) -> str:
        usual = "needed" if self.default is NEEDED else f"default {written(self.default)}"
        return f"{self.accepts}, {usual}" + (f": {self.meaning}" if self.meaning else "")


def written(value: object) -> str:
    """A value as --set reads it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(written, value))}]"
    return str(value)


def options(kind: type) -> tuple[Option, ...]:
    """The fields of a dataclass, or else the keywords of a constructor: `seed` is then that of the run."""
    if kind not in _OPTIONS:
        _OPTIONS[kind] = _options(kind)
    return _OPTIONS[kind]


_OPTIONS: dict[type, tuple[Option, ...]] = {}  # to read type hints takes a while, and kernels are made by the thousand


def _options(kind: Any) -> tuple[Option, ...]:
    if dataclasses.is_dataclass(kind):
        in_turn = sorted(dataclasses.fields(kind), key=lambda one: one.kw_only is True)  # as in its constructor
        given = [(one.name, _default(one)) for one in in_turn]
        hints = get_type_hints(kind, include_extras=True)
    else:
        constructor = inspect.unwrap(kind.__init__)
        parameters = inspect.signature(constructor).parameters.values()
        own = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "seed"]
        given = [(one.name, NEEDED if one.default is one.empty else one.default) for one in own]
        hints = get_type_hints(constructor, include_extras=True)
    return tuple(Option(name, Accepts.of(hints[name]), usual, _meaning(hints[name])) for name, usual in given)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return NEEDED if field.default is dataclasses.MISSING else field.default


def _meaning(hint: Any) -> str:
    texts = [part for part in get_args(hint)[1:] if isinstance(part, str)] if get_origin(hint) is Annotated else []
    return texts[0] if texts else ""


# ---- refusing


def refuse_unknown(what: str, own: Iterable[str], given: Iterable[str]) -> None:
    """`what` is "the kernel 'gibbs'": has it an option of each name?"""
    known = list(own)
    for option in given:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes no options"
            raise BesagError(f"{what} has no option {quoted(option)}: {takes}.{nearest(option, known)}")


def refuse_unfit(what: str, own: Iterable[Option], given: Mapping[str, object]) -> None:
    """Is each value of the type that its option says?"""
    for option in own:
        if option.name in given and not option.accepts.takes(value := given[option.name]):
            guess = nearest(value, option.accepts.words) if isinstance(value, str) else ""
            raise BesagError(f"{what} with {option.name}={quoted(value)}: give {option.accepts.in_words}.{guess}")


class Registry(dict[str, K]):
    """Classes by name, each a `Named`. Whoever imports the registry has imported the room that fills it."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what  # "scoring method", for messages
        self.aliases: dict[str, str] = {}

    def register(self, kind: K) -> K:
        """A class decorator: from now on the class is known by its `name` and `aliases`, and checks its options."""
        named: Any = kind
        if missing := sorted(getattr(kind, "__abstractmethods__", ())):
            raise BesagError(
                f"the {self.what} {named.name!r} cannot be registered: {kind.__name__} does not define "
                f"{', '.join(missing)}. Define every method that its base class declares as abstract"
            )
        self[named.name] = kind
        self.aliases.update(dict.fromkeys(named.aliases, named.name))
        _check_options(kind, f"the {self.what} {named.name!r}")
        return kind

    def known(self, name: str) -> str:
        """The name that is meant by a name or an alias; a wrong one is answered with the nearest right one."""
        if not isinstance(name, str):
            raise BesagError(f"{quoted(name)} names no {self.what}: give one of {', '.join(self)}")
        known = self.aliases.get(name, name)
        if known not in self:
            guess = nearest(name, [*self, *self.aliases])
            raise BesagError(f"there is no {self.what} {quoted(name)}.{guess} There are: {', '.join(self)}")
        return known

    def find(self, name: str) -> K:
        return self[self.known(name)]

    def options(self, name: str) -> list[str]:
        return [one.name for one in options(self.find(name))]

    def refuse_unknown(self, verb: str, own: Iterable[str], name: str, given: Iterable[str]) -> None:
        """A verb with arguments of its `own` hands further ones to what has this name: has either each of them?"""
        refuse_unknown(f"{verb}() with the {self.what} {name!r}", [*own, *self.options(name)], given)


def _check_options(kind: Any, what: str) -> None:
    """Let the constructor refuse unknown options, and values of another type, in the words that all use."""
    construct = kind.__init__
    of_data = dataclasses.is_dataclass(kind)

    @functools.wraps(construct)
    def checked(self: Any, *given: Any, **named: Any) -> None:
        if type(self) is kind:  # not a subclass with options of its own
            own = options(kind)
            refuse_unknown(what, [one.name for one in own], [one for one in named if of_data or one != "seed"])
            positional = dict(zip((one.name for one in own), given, strict=False)) if of_data else {}
            refuse_unfit(what, own, {**positional, **named})
        construct(self, *given, **named)

    kind.__init__ = checked
