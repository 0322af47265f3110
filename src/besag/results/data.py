"""Results as data: what JSON cannot write."""

from __future__ import annotations

import math


def json_number(x: float | None) -> float | str | None:
    """JSON has neither nan nor infinity; Python and JavaScript both read "Infinity" back as a number."""
    if x is None or math.isnan(x):
        return None
    return x if math.isfinite(x) else ("Infinity" if x > 0 else "-Infinity")
