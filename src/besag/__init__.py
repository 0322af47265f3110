"""besag turns any masked language model into a language model. `import besag` is cheap: names load when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from besag.conditionals.ising import Ising
    from besag.conditionals.table import Table
    from besag.engine import IDLE
    from besag.errors import BesagError
    from besag.language_model import LanguageModel, load
    from besag.scores import Corpus, LengthModel, Score, corpus

_HOMES = {
    "BesagError": "besag.errors",
    "Corpus": "besag.scores",
    "IDLE": "besag.engine",
    "Ising": "besag.conditionals.ising",
    "LanguageModel": "besag.language_model",
    "LengthModel": "besag.scores",
    "Score": "besag.scores",
    "Table": "besag.conditionals.table",
    "corpus": "besag.scores",
    "load": "besag.language_model",
}

__all__ = [
    "IDLE", "BesagError", "Corpus", "Ising", "LanguageModel", "LengthModel", "Score", "Table", "corpus", "load",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'besag' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
