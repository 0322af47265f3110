"""Where the embedded model's files lie. Knows nothing of how they are loaded."""

from __future__ import annotations

from pathlib import Path

EMBEDDED = "small-en"
NAMES = (EMBEDDED, "embedded")  # both are the bundled model, wherever a model is named
BEFORE = "tiny-en"  # what was embedded before it


def is_bundled(name: object) -> bool:
    """Return whether this names the bundled model."""
    return name in NAMES


def path(name: str = EMBEDDED) -> Path:
    """The folder of an embedded model: configuration, weights, tokenizer and model card."""
    return Path(__file__).parent / name
