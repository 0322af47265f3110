"""A run on disk: what the chains said on the way, and the state to go on from.

    FILE          one row for each kept step and chain, JSON Lines or Parquet
    FILE.state    the last saved state, as arrays, with what it is the state of

A state without a step is there before the first row, and says whose the rows are. The state is saved after the first
rows and then every SAVED seconds, always after the rows it follows. So a run that is killed goes on from the last saved
step; rows beyond it are cut off and written again, the same. Parquet cannot be cut: it is written whole at the end, and
only JSON Lines can be gone on with. A FILE that is empty or has no step saved is a run that never began: it counts as
none. One process at a time records to a file.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from besag.errors import BesagError
from besag.files.appending import Appended
from besag.files.cells import json_line
from besag.files.claim import Claim
from besag.files.progress import differences
from besag.files.writing import ParquetWriter
from besag.samplers.kernel import Info
from besag.samplers.run import has_step, read, restore, save

SAVED = 20.0  # seconds between two savings of the state


class Recording:
    """Use it as a context: leaving it saves the state, whatever happened."""

    def __init__(self, path: str | Path, *, about: dict[str, Any], every: int, resume: bool = False) -> None:
        self.path, self.about, self.every = Path(path), about, every
        self.state_path = self.path.with_name(self.path.name + ".state")
        if self.path.suffix not in (".jsonl", ".parquet"):
            raise BesagError(f"{str(path)!r}: what chains say is recorded as .jsonl or .parquet.")
        self.parquet = self.path.suffix == ".parquet"
        if resume and self.parquet:
            raise BesagError(f"{str(path)!r}: a Parquet file cannot be gone on with; record as .jsonl for that.")
        if not self.path.parent.is_dir():
            raise BesagError(f"no such folder: {str(self.path.parent)!r}, to write {str(path)!r} in.")
        self._claim = Claim(self.path, "choose another file to record to")
        try:
            self.resume = self._goes_on(resume)
        except BesagError:
            self._claim.release()
            raise
        self.saved = float("-inf")  # the first state is saved at once
        self.state: Any = None
        self._kept: Any = None  # the state that is on disk
        self.rows: list[dict[str, Any]] = []  # for Parquet, not written yet
        self.names: list[str] = []  # its columns
        self._parquet = ParquetWriter(str(self.path)) if self.parquet else None
        self._lines = Appended(str(self.path))

    def _goes_on(self, resume: bool) -> bool:
        """Is there a run to go on with? What is there and is none of ours is refused."""
        there = self.path.exists()
        stopped = self.state_path.exists() and not self.parquet
        begun = stopped and there and has_step(self.state_path)
        if there and self.path.stat().st_size and not stopped:
            raise BesagError(f"{str(self.path)!r} exists already: choose another file.")
        if not resume:
            if begun:
                raise BesagError(f"{str(self.path)!r} exists already: go on with it (resume), or choose another file.")
            return False
        if stopped and there:
            self._refuse_another(read(self.state_path)[1])
        if not begun:
            warnings.warn(f"there is no run to go on with in {str(self.path)!r}: it begins", stacklevel=2)
        return begun

    def begin(self, initial: Callable[[], Any]) -> Any:
        """The state to go on from, or None to begin; the file is cut off after that state.

        `initial` may run the network for long: all that can be wrong on disk is looked at before.
        """
        if self.parquet:
            return None
        if not self.resume:
            save(None, self.state_path, self.about)  # over one whose trace is gone
            self._lines.append(b"")  # the file is there, and empty
            return None
        arrays, _ = read(self.state_path)
        self._lines.keep(self._end(arrays[".step"].item(), len(arrays[".ids"])))
        state, _ = restore(initial(), self.state_path)
        self._lines.append(b"")  # cut off, even if no step is left to make
        return state

    def add(self, state: Any, info: Info | None, texts: Callable[[], list[str]], chains: list[int]) -> None:
        """What one step said, if it is one of those that are kept; the state, if it is time."""
        if state.step % self.every == 0 and (info is not None or state.step == 0):
            numbers = {} if info is None else {"changed": info.changed, "passes": info.passes, **info.more}
            told = {name: value.tolist() for name, value in numbers.items()}
            self._write([
                {"step": state.step, "chain": chain, "text": text, **{name: told[name][at] for name in told}}
                for at, (chain, text) in enumerate(zip(chains, texts(), strict=True))
            ])  # fmt: skip
        self.state = state
        if time.monotonic() - self.saved > SAVED:
            self._save()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._close()
        finally:
            self._claim.release()

    def _close(self) -> None:
        try:
            if self.state is not self._kept:
                self._save()
            self._write_rows()
        finally:
            (self._parquet or self._lines).close()
        if self.state is None and not self.resume and not self.parquet:  # nothing was said
            self.path.unlink(missing_ok=True)
            self.state_path.unlink(missing_ok=True)

    def _save(self) -> None:
        if not self.parquet:
            self._lines.size()  # on disk, before the state that follows them
            save(self.state, self.state_path, self.about)
        self._kept = self.state
        self.saved = time.monotonic()

    def _write(self, rows: list[dict[str, Any]]) -> None:
        if not self.parquet:
            self._lines.append("".join(map(json_line, rows)).encode())
            return
        self.rows += rows
        if rows[0]["step"] > 0:  # step 0 has no numbers, and the first rows set the columns
            self._write_rows()

    def _write_rows(self) -> None:
        """To Parquet, all with the columns of the first rows that have numbers."""
        rows, self.rows = self.rows, []
        if self._parquet is None:
            return
        self.names = self.names or list(dict.fromkeys(name for row in rows for name in row))
        for row in rows:
            self._parquet.write({name: _number(row.get(name)) for name in self.names}, {})

    def _refuse_another(self, about: dict[str, Any]) -> None:
        differ = differences({name: about.get(name) for name in self.about}, self.about)
        if differ:
            raise BesagError(
                f"{str(self.path)!r} is a run with other settings: {'; '.join(differ)}. Go on with the same ones, or "
                "record to another file."
            )

    def _end(self, step: int, chains: int) -> int:
        """Where the rows up to `step` end, in bytes; all of them must be there."""
        end = 0
        with open(self.path, "rb") as file:
            for number, due in enumerate((at for at in range(0, step + 1, self.every) for _ in range(chains)), 1):
                line = file.readline()
                if _step(line) != due:
                    raise BesagError(
                        f"{str(self.path)!r} has lost rows, and nothing was changed: the run was saved at step {step}, "
                        f"and line {number} is not a whole row of step {due}. Put a whole copy in its place, or record "
                        "to another file."
                    )
                end += len(line)
        return end


def _step(line: bytes) -> Any:
    """Of a row; None if it was not written whole."""
    try:
        return json.loads(line)["step"] if line.endswith(b"\n") else None
    except (ValueError, KeyError, TypeError):
        return None


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, bool | np.bool_) else value
