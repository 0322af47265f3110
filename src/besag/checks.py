"""What an argument must be, asked in one place: a whole number, a number, or what a public function's annotations say.

True and False are no numbers, and a text is no list of texts.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    runtime_checkable,
)

from besag.errors import BesagError, nearest, quoted
from besag.registry import IN_WORDS, KINDS, LARGEST, refuse_unknown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])


def is_whole(value: object, least: int = 1) -> bool:
    """Is it a whole number, Python's or numpy's, of at least `least`?"""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def is_number(value: object) -> bool:
    """Is it a real number?"""
    return isinstance(value, Real) and not isinstance(value, bool)


# What one request may ask for: no honest one comes near, and beyond it would not end, or not fit.
MOST_CHAINS = 2**20
MOST_STEPS = 10**8  # of a chain; also where nothing but time is spent
MOST_LENGTH = 2**17  # tokens of a text from nothing
MOST_PLACES = 2**20  # of a block, a group or a window
MOST_CANDIDATES = 1024  # tokens of each of two places, of which a table is made for every chain
MOST_MINORS = 10**5
MOST_COPIES = 2**16  # of a text


def whole_number(value: object, name: str, least: int = 1, right: str = "", most: int | None = None) -> int:
    """The value as an int, or an error that quotes it; `right` says what would be right, where that is a sentence.

    `most` is what a request may ask for: a count beyond it would not end, or not fit, and is refused as it comes in.
    """
    if not is_whole(value, least):
        raise BesagError(f"{name}={quoted(value)}: {right or f'give a whole number, at least {least}'}")
    whole = int(value)  # type: ignore[call-overload]
    if most is not None and whole > most:
        raise BesagError(f"{name}={quoted(value)}: give at most {most:,}")
    return whole  # type: ignore[no-any-return]


def number(value: object, name: str, least: float = -math.inf, most: float = math.inf) -> float:
    """The value as a finite float from `least` to `most`, or an error that quotes it."""
    found = _as_float(value)
    if not (math.isfinite(found) and least <= found <= most):
        bounds = [f"at least {least:g}"] * math.isfinite(least) + [f"at most {most:g}"] * math.isfinite(most)
        raise BesagError(f"{name}={quoted(value)}: give a number{', ' if bounds else ''}{' and '.join(bounds)}")
    return found


def array(value: object, name: str) -> NDArray[np.float64]:
    """The value as an array of float64, or an error that quotes it."""
    import numpy as np  # the command line, which asks for numbers alone, starts without it

    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # of words, of rows of several lengths, on a GPU
        raise BesagError(f"{name}={quoted(value)}: give an array of numbers") from None


def _as_float(value: object) -> float:
    try:
        return float(value) if isinstance(value, Real) and is_number(value) else math.nan
    except OverflowError:  # an integer beyond every float
        return math.inf


# ---- what annotations say


class Kind(NamedTuple):
    """One thing that an annotation allows."""

    said: str  # "a whole number", as an error says it
    fits: Callable[[Any], bool]
    elements: tuple[Kind, ...] = ()  # what a list of them may hold; nothing said: anything
    words: tuple[str, ...] = ()  # which words, where it is one of some


ANYTHING = Kind("anything", lambda value: True)
PLAIN = {int: "int", float: "float", bool: "bool", str: "str"}  # as options call them
SEVERAL = {"a text": "texts", "a whole number": "whole numbers", "a number": "numbers"}


@runtime_checkable
class Axes(Protocol):
    """Those of matplotlib, which is imported late: known by what they can do."""

    imshow: Any
    set_title: Any


def checked(door: F) -> F:
    """Let a public function, or the constructor of a class, refuse what its annotations do not allow, in our words.

    An argument of another type is quoted beside what would be right, a name that there is not beside those there are.
    Annotations are read with the first call. What they name that is imported for the type checker alone may be
    anything here: whoever uses it looks at it. Of a list all elements are looked at, of a stream none.
    """
    if isinstance(door, type):
        kind: Any = door
        kind.__init__ = checked(kind.__init__)
        return door
    what = door.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    read = functools.cache(lambda: _read(door))

    @functools.wraps(door)
    def run(*given: Any, **named: Any) -> Any:
        signature, kinds, is_open = read()
        if not is_open:
            refuse_unknown(f"{what}()", [name for name in kinds if name not in ("self", "cls", "engine")], named)
        try:
            arguments = signature.bind(*given, **named).arguments
        except TypeError as misplaced:  # "missing a required argument: 'texts'"
            raise BesagError(f"{what}(): {misplaced}") from None
        for name, value in arguments.items():
            if (wrong := misfit(kinds[name], name, value)) is not None:
                raise BesagError(wrong)
        return door(*given, **named)

    return cast(F, run)


def misfit(kinds: tuple[Kind, ...], name: str, value: object) -> str | None:
    """What is wrong with a value that is of none of the kinds, or with the first of its elements that is not."""
    fitting = [kind for kind in kinds if kind.fits(value)]
    if not fitting:
        words = [word for kind in kinds for word in kind.words]
        guess = nearest(value, words) if isinstance(value, str) else ""
        right = " or ".join(kind.said for kind in kinds)
        if isinstance(value, int) and abs(value) > LARGEST:
            right = right.replace(IN_WORDS["int"], f"{IN_WORDS['int']} of at most 18 digits")
        return f"{name}={quoted(value)}: give {right}{guess and '.'}{guess}"
    if not isinstance(value, list | tuple) or not all(kind.elements for kind in fitting):
        return None
    wrong = [_misfit_within(kind.elements, name, value) for kind in fitting]
    return None if None in wrong else wrong[0]


def _misfit_within(kinds: tuple[Kind, ...], name: str, values: Iterable[object]) -> str | None:
    found = (misfit(kinds, f"{name}[{place}]", value) for place, value in enumerate(values))
    return next((wrong for wrong in found if wrong is not None), None)


def _read(door: Any) -> tuple[inspect.Signature, dict[str, tuple[Kind, ...]], bool]:
    """Its signature, what each argument may be, and whether it hands further names on."""
    signature = inspect.signature(door)
    names = _Names(inspect.unwrap(door).__globals__)
    kinds = {}
    for name, one in signature.parameters.items():
        kinds[name] = _kinds(names.meaning(one.annotation))
        if one.kind is one.VAR_POSITIONAL:  # comes as a tuple
            kinds[name] = (Kind("", lambda value: True, kinds[name]),)
        elif one.kind is one.VAR_KEYWORD:
            kinds[name] = (ANYTHING,)
    return signature, kinds, any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())


class _Names(dict[str, Any]):
    """The names of a module; one that only the type checker knows may be anything."""

    def meaning(self, annotation: Any) -> Any:
        if annotation is inspect.Parameter.empty:
            return Any
        try:
            return eval(annotation, {}, self) if isinstance(annotation, str) else annotation
        except TypeError:  # anything[…]
            return Any

    def __missing__(self, name: str) -> Any:
        return Axes if name == "Axes" else getattr(builtins, name, Any)


def _kinds(hint: Any) -> tuple[Kind, ...]:
    """What a type hint allows."""
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, str):  # an annotation within another
        return (ANYTHING,)
    if origin is Annotated:
        return _kinds(parts[0])
    if origin in (Union, types.UnionType):
        return tuple(dict.fromkeys(kind for part in parts for kind in _kinds(part)))
    if origin is Literal:
        return (Kind(" or ".join(map(repr, parts)), lambda value: _is_one_of(value, parts), words=parts),)
    if hint is None or hint is types.NoneType:
        return (Kind("None", lambda value: value is None),)
    if hint in PLAIN:
        return (Kind(IN_WORDS[PLAIN[hint]], KINDS[PLAIN[hint]]),)
    if hint is Path:
        return (Kind("a path", lambda value: isinstance(value, os.PathLike)),)
    return (_of_class(origin or hint, parts),)


def _is_one_of(value: object, words: tuple[Any, ...]) -> bool:
    return any(type(value) is type(word) and value == word for word in words)


def _of_class(kind: Any, parts: tuple[Any, ...]) -> Kind:
    if kind is Callable:
        return Kind("a function", callable)
    if not isinstance(kind, type) or kind in (Any, object) or kind.__name__.startswith("_"):  # of numpy's ArrayLike
        return ANYTHING
    if kind is tuple and parts and parts[-1] is not ...:
        each = [_kinds(part) for part in parts]
        return Kind(f"a tuple of {len(each)}", lambda value: _is_tuple(value, each))
    if issubclass(kind, Mapping):
        return Kind("a dict", lambda value: isinstance(value, Mapping))
    if kind in (list, tuple, Sequence, Iterable):
        elements = _kinds(parts[0]) if parts else ()
        several = " or ".join(SEVERAL[one.said] for one in elements if one.said in SEVERAL)
        return Kind(
            f"a list{several and ' of '}{several}", _is_iterable if kind is Iterable else KINDS["list"], elements
        )
    if getattr(kind, "_is_protocol", False) and not getattr(kind, "_is_runtime_protocol", False):
        return ANYTHING
    return Kind(f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}", lambda value: isinstance(value, kind))


def _is_tuple(value: object, each: list[tuple[Kind, ...]]) -> bool:
    if not isinstance(value, list | tuple) or len(value) != len(each):
        return False
    return all(misfit(kinds, "", one) is None for kinds, one in zip(each, value, strict=True))


def _is_iterable(value: object) -> bool:
    """Are there several? The letters of a text are not, nor are the keys of a dict."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping)
