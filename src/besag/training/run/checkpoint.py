"""A run on disk, such that a crash at any moment leaves a whole checkpoint behind.

A checkpoint is a folder `step-00001000` with the state in files of bounded size (`shards.py`: tensors and plain
numbers, never code) and `meta.json` (what it belongs to, the size and checksum of each file). It is written under a
temporary name, flushed to the disk and only then given its name; older ones go after that. So whatever has the name is
whole, and one that lost or changed a file later, on its way to another machine say, is told by its checksums. Knows
files, not what is in them.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from besag.checks import is_whole
from besag.errors import BesagError, quoted
from besag.training.run import shards

FORMAT, ONE_FILE = 2, 1  # the second was written before there were shards, and is still read
STATE, META = "state.pt", "meta.json"
MEGABYTE = 10**6
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
            if self.meta["format"] == FORMAT:
                return shards.read(self.folder, self.meta["files"])
            state: dict[str, Any] = torch.load(self.folder / STATE, map_location="cpu", weights_only=True)
        except BesagError:
            raise
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

    def __init__(self, folder: Path, keep: int = 2, shard: float = 500.0) -> None:
        self.folder, self.keep, self.most = folder, max(keep, 1), int(shard * MEGABYTE)

    def newest(self) -> Checkpoint | None:
        """The newest whole one. Those that are torn or damaged are passed over, and told of; all cannot be."""
        found, torn = self._newest()
        if found is not None and torn:
            warnings.warn(f"{'; '.join(torn)}: the run goes on from step {found.step}", stacklevel=2)
        elif torn:
            raise BesagError(
                f"no checkpoint in {str(self.folder)!r} is whole: {'; '.join(torn)}. Bring what is missing, or begin a "
                "new run in another folder (run.output)"
            )
        return found

    def last(self, count: int) -> list[Checkpoint]:
        """The last so many, as far as there are that many and they are whole."""
        return [found for path in self._paths()[-count:] if (found := _looked_at(path)[0]) is not None]

    def _newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole one, and what is wrong with those after it."""
        torn: list[str] = []
        for path in reversed(self._paths()):
            found, wrong = _looked_at(path)
            if found is not None:
                return found, torn
            torn.append(f"{path.name}: {wrong}")
        return None, torn

    def save(self, step: int, state: Mapping[str, Any], meta: Mapping[str, Any]) -> Checkpoint:
        final = self.folder / f"step-{step:08d}"
        draft = self.folder / f"{UNFINISHED}{step:08d}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._clear_drafts()
            draft.mkdir()
            files = shards.write(draft, state, self.most)
            facts = {"format": FORMAT, "step": step, **meta, "files": files}
            shards.put(draft / META, json.dumps(facts, indent=1).encode())
            _flush(draft)
            if final.exists():  # of a run that was resumed further back
                shutil.rmtree(final)
            draft.rename(final)
            _flush(self.folder)
        except OSError as problem:
            shutil.rmtree(draft, ignore_errors=True)
            kept, _ = self._newest()
            there = f"the one of step {kept.step} is whole" if kept else "there is no earlier one"
            reason = _why(problem)
            raise BesagError(
                f"the checkpoint of step {step} could not be written to {str(self.folder)!r}: {reason}; {there}. Make "
                f"room and go on with --resume"
            ) from problem
        self._forget_old(final)
        return Checkpoint(final, facts)

    def _paths(self) -> list[Path]:
        """Oldest first."""
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if NAME.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(path.name.partition("-")[2]))

    def _forget_old(self, new: Path) -> None:
        for path in self._paths()[: -self.keep]:
            if path != new:  # beside later ones that are damaged, the new one may be the only one that is whole
                shutil.rmtree(path, ignore_errors=True)

    def _clear_drafts(self) -> None:
        for path in self.folder.glob(f"{UNFINISHED}*"):
            shutil.rmtree(path, ignore_errors=True)


def _why(problem: BaseException) -> str:
    """What went wrong, in the words of the system where torch only says that a position is not the expected one."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__


def _flush(folder: Path) -> None:
    """The names in a folder, onto the disk; where the system knows no such thing, they get there by themselves."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _looked_at(path: Path) -> tuple[Checkpoint | None, str]:
    """A checkpoint if all of it is there as it was written; if not, what is wrong."""
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
        form, step = meta["format"], meta["step"]
        files = {STATE: meta["state"]} if form == ONE_FILE else meta["files"]
        if not is_whole(step, 0) or not all(name == STATE or shards.NAMES.fullmatch(name) for name in files):
            return None, f"{META} is none of a checkpoint"
        wrong = shards.fault(path, files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        return None, f"{META} is {'missing' if isinstance(problem, FileNotFoundError) else 'none of a checkpoint'}"
    if form not in (FORMAT, ONE_FILE):
        return None, f"its format is {quoted(form)}, and this besag reads {ONE_FILE} and {FORMAT}"
    return (None, wrong) if wrong else (Checkpoint(path, dict(meta)), "")


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
