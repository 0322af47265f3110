"""The lab: exact theory on systems small enough for exact answers, as named experiments.

A law is an array of probabilities with one axis a place, (V_1, …, V_N), in float64, that sums to 1. Everything here
takes and gives such arrays; names load when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "EXPERIMENTS": "besag.lab.experiment",
    "Experiment": "besag.lab.experiment",
    "Finding": "besag.lab.finding",
    "experiment": "besag.lab.experiment",
    "register": "besag.lab.experiment",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'besag.lab' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
