"""The folder of a run, taken by one process at a time. Knows which files make a folder a run, not what is in them.

A folder holds a run once something was logged, saved or finished in it. What came before, a recipe, a tokenizer or
tokenised text, costs nothing but time: a run that could not begin leaves its folder free for the next try.
"""

from __future__ import annotations

from pathlib import Path

from besag.errors import BesagError
from besag.files.claim import LOCK, Claim

RECIPE, CHECKPOINTS, MODEL, LOG = "recipe.toml", "checkpoints", "model", "log.jsonl"
ADAPTER = "adapter"  # in place of a model
MODELS = "models"  # those on the way


def begun(folder: Path) -> bool:
    """Was anything learned here?"""
    log = folder / LOG
    made = (folder / MODEL).exists() or (folder / ADAPTER).exists()
    return any((folder / CHECKPOINTS).glob("step-*")) or made or _size(log) > 0


def tried(folder: Path) -> bool:
    """Has a run taken this folder before?"""
    return (folder / LOCK).exists()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def take(folder: Path) -> Claim:
    """A folder that no other process trains in, until it is released."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BesagError(f"run.output = {str(folder)!r} cannot be written to: {problem.strerror}") from problem
    return Claim(folder, "choose another run.output", stays=True)
