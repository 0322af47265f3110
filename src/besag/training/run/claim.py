"""The folder of a run, taken by one process at a time. Knows which files make a folder a run, not what is in them.

A folder holds a run once something was logged, saved or finished in it. What came before, a recipe, a tokenizer or
tokenised text, costs nothing but time: a run that could not begin leaves its folder free for the next try.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from besag.errors import BesagError

RECIPE, CHECKPOINTS, MODEL, LOG = "recipe.toml", "checkpoints", "model", "log.jsonl"
LOCK = ".lock"


def begun(folder: Path) -> bool:
    """Was anything learned here?"""
    log = folder / LOG
    return any((folder / CHECKPOINTS).glob("step-*")) or (folder / MODEL).exists() or _size(log) > 0


def tried(folder: Path) -> bool:
    """Has a run taken this folder before?"""
    return (folder / LOCK).exists()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


class Claim:
    """A folder that no other process trains in, until `release`; the end of the process releases it, too."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[str] = open(folder / LOCK, "a")  # noqa: SIM115 (closed by `release`)
        except OSError as problem:
            raise BesagError(f"run.output = {str(folder)!r} cannot be written to: {problem.strerror}") from problem
        if not _lock(self._file):
            self._file.close()
            raise BesagError(f"another process is training in {str(folder)!r}: choose another run.output")

    def release(self) -> None:
        self._file.close()


def _lock(file: IO[str]) -> bool:
    """False if another process has it. Where the system or the disk knows no locks, everybody is let in."""
    if os.name != "posix":
        return True
    import fcntl

    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True
