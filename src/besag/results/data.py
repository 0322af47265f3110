"""Results as data: the one convention for what JSON cannot write, and what a frame says about itself.

    nan → null        ∞ → "Infinity"        −∞ → "-Infinity"

JSON has none of the three; Python's and JavaScript's numbers read "Infinity" back. Knows NumPy's arrays and numbers,
named tuples and enumerations. Refuses to know any result beyond the names of its properties.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import require

if TYPE_CHECKING:
    from pandas import DataFrame

    from besag.results.result import Result

INFINITE = {"Infinity": math.inf, "-Infinity": -math.inf}
ABOUT = ("text", "method", "normalised", "unit", "reduction", "kernel", "law", "how", "seed", "model", "dtype")


def json_number(x: float | None) -> float | str | None:
    """A number as JSON can write it."""
    if x is None or math.isnan(x):
        return None
    return x if math.isfinite(x) else ("Infinity" if x > 0 else "-Infinity")


def from_json(value: Any) -> Any:
    """The number that `json_number` wrote; anything else as it is."""
    if value is None:
        return math.nan
    return INFINITE.get(value, value) if isinstance(value, str) else value


def json_ready(value: Any) -> Any:
    """Any nested value as JSON can write it: named tuples are objects, sequences and arrays are lists."""
    if isinstance(value, float):
        return json_number(float(value))
    if isinstance(value, Enum):
        return json_ready(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): json_ready(part) for name, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return json_ready(value._asdict())
    if isinstance(value, list | tuple | set | frozenset):
        return [json_ready(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return json_ready(value.tolist())
    return value


def frame(result: Result, rows: Any, columns: Iterable[str] | None = None, **more: Any) -> DataFrame:
    """A table for pandas; `attrs` hold which result it is, its status, and whatever says what the numbers are."""
    made: DataFrame = require("pandas", extra="eval").DataFrame(rows, columns=None if columns is None else [*columns])
    return describe(made, result, **more)


def describe(made: DataFrame, result: Result, **more: Any) -> DataFrame:
    """The same frame, with what it is in its `attrs`."""
    about = {name: getattr(result, name) for name in ABOUT if isinstance(getattr(result, name, None), str | int)}
    made.attrs.update({"result": type(result).__name__, "status": str(result.status), **about, **more})
    return made
