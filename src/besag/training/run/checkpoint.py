"""A run on disk, such that a crash at any moment leaves a whole checkpoint behind.

A checkpoint is a folder `step-00001000` with `state.pt` (tensors and plain numbers, never code) and `meta.json` (what
it belongs to, the size and checksum of the state). It is written under a temporary name, flushed to the disk and only
then given its name; older ones go after that. So whatever has the name is whole, and one whose file was damaged later
is told by its checksum. Knows files, not what is in them.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from besag.checks import is_whole
from besag.errors import BesagError

FORMAT = 1
STATE, META = "state.pt", "meta.json"
NAME, UNFINISHED = re.compile(r"step-(\d{8,})"), ".unfinished-"


@dataclass(frozen=True)
class Checkpoint:
    folder: Path
    meta: dict[str, Any]

    @property
    def step(self) -> int:
        return int(self.meta["step"])

    def read(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = torch.load(self.folder / STATE, map_location="cpu", weights_only=True)
        except Exception as problem:  # torch, zip files and pickles have each their own
            raise BesagError(f"the checkpoint {str(self.folder)!r} cannot be read: {_why(problem)}") from problem
        return state

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """What is taken from it in here must fit what was built."""
        try:
            yield
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as problem:
            if isinstance(problem, BesagError):
                raise
            raise BesagError(
                f"the checkpoint {str(self.folder)!r} does not fit the network of this recipe ({_why(problem)}): it "
                "was written by another one, or by another besag. Begin a new run in another folder (run.output)"
            ) from problem


class Checkpoints:
    """The checkpoints of one run, in one folder."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder, self.keep = folder, max(keep, 1)

    def newest(self) -> Checkpoint | None:
        """The newest whole one; those that are torn or damaged are passed over."""
        for path in reversed(self._paths()):
            meta = _whole(path)
            if meta is not None:
                return Checkpoint(path, meta)
        return None

    def save(self, step: int, state: Mapping[str, Any], meta: Mapping[str, Any]) -> Checkpoint:
        final = self.folder / f"step-{step:08d}"
        draft = self.folder / f"{UNFINISHED}{step:08d}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._clear_drafts()
            draft.mkdir()
            checksum = _write_state(draft / STATE, state)
            facts = {"format": FORMAT, "step": step, **meta, "state": checksum}
            _write(draft / META, json.dumps(facts, indent=1).encode())
            _flush(draft)
            if final.exists():  # of a run that was resumed further back
                shutil.rmtree(final)
            draft.rename(final)
            _flush(self.folder)
        except (OSError, RuntimeError) as problem:  # torch reports a failed write as a RuntimeError
            shutil.rmtree(draft, ignore_errors=True)
            kept = self.newest()
            there = f"the one of step {kept.step} is whole" if kept else "there is no earlier one"
            reason = _why(problem)
            raise BesagError(
                f"the checkpoint of step {step} could not be written to {str(self.folder)!r}: {reason}; {there}. Make "
                f"room and go on with --resume"
            ) from problem
        self._forget_old()
        return Checkpoint(final, facts)

    def _paths(self) -> list[Path]:
        """Oldest first."""
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if NAME.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(path.name.partition("-")[2]))

    def _forget_old(self) -> None:
        for path in self._paths()[: -self.keep]:
            shutil.rmtree(path, ignore_errors=True)

    def _clear_drafts(self) -> None:
        for path in self.folder.glob(f"{UNFINISHED}*"):
            shutil.rmtree(path, ignore_errors=True)


def _write_state(path: Path, state: Mapping[str, Any]) -> dict[str, Any]:
    with open(path, "wb") as file:
        torch.save(dict(state), file)
        file.flush()
        os.fsync(file.fileno())
    return _checksum(path)


def _why(problem: BaseException) -> str:
    """What went wrong, in the words of the system where torch only says that a position is not the expected one."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    """The names in a folder, onto the disk; where the system knows no such thing, they get there by themselves."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _checksum(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _whole(path: Path) -> dict[str, Any] | None:
    """The meta data of a checkpoint, or None if anything of it is missing or not as it was written."""
    try:
        meta = json.loads((path / META).read_text())
        if meta["format"] != FORMAT or _checksum(path / STATE) != meta["state"]:
            return None
        if not is_whole(meta["step"], 0):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return dict(meta)


def random_state() -> dict[str, Any]:
    """Every global generator of this process, as tensors and plain numbers."""
    kind, keys, place, has_gauss, gauss = np.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": (
            str(kind),
            torch.from_numpy(np.asarray(keys).astype(np.int64)),
            int(place),
            int(has_gauss),
            float(gauss),
        ),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    kind, numbers, *rest = state["numpy"]
    np.random.set_state((kind, numbers.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
