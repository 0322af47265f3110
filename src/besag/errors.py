"""What goes wrong, said so that the reader knows what would be right."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class BesagError(ValueError):
    """Input that besag cannot use; the message quotes it and says what would be right."""


def out_of_memory(failure: BaseException) -> bool:
    """Return whether memory ran out. torch says so differently on CUDA, MPS and the CPU."""
    text = str(failure).lower()
    said = any(part in text for part in ("out of memory", "can't allocate", "not enough memory"))
    of_torch = type(failure).__name__ == "OutOfMemoryError"  # known by name: the command line starts without torch
    return isinstance(failure, MemoryError) or of_torch or (isinstance(failure, RuntimeError) and said)


class TooLong(BesagError):
    """A text that a model does not see at a time, asked about as a whole."""


def quoted(value: object) -> str:
    """A value as an error message quotes it: on one line, what is long not whole, whatever it is."""
    try:
        shown = repr(value if not isinstance(value, str) or len(value) <= 200 else f"{value[:120]} … {value[-60:]}")
    except Exception:  # an integer of too many digits for Python to write, an object whose own words fail
        return f"a value of type {type(value).__name__}"
    shown = " ".join(shown.split("\n"))
    return shown if len(shown) <= 400 else f"{shown[:200]} … {shown[-60:]}"


def nearest(word: str, candidates: Iterable[str]) -> str:
    """A suffix for an error message: the candidate closest to `word`, or nothing when none is close."""
    names = {name.lower(): name for name in candidates}
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    return f" Did you mean {names[close[0]]!r}?" if close else ""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise BesagError(f"this needs {module!r}, which is not installed: pip install 'besag[{extra}]'") from missing
