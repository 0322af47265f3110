"""Where the embedded model's files lie. Knows nothing of how they are loaded."""

from __future__ import annotations

from pathlib import Path

EMBEDDED = "small-en"
BEFORE = "tiny-en"  # what was embedded before it


def path(name: str = EMBEDDED) -> Path:
    """The folder of an embedded model: configuration, weights, tokenizer and model card."""
    return Path(__file__).parent / name
