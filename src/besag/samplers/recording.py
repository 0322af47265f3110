"""A run on disk: what the chains said on the way, and the state to go on from.

    FILE          one row for each kept step and chain, JSON Lines or Parquet
    FILE.state    the last saved state, as arrays, with what it is the state of

The state is saved after the first rows and then every SAVED seconds, always after the rows it follows. So a run that is
killed goes on from the last saved step; rows beyond it are cut off and written again, the same. Parquet cannot be cut:
it is written whole at the end, and only JSON Lines can be gone on with. An empty FILE without a state is a run that
never began: it counts as none.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from besag.errors import BesagError
from besag.files.cells import json_line
from besag.files.progress import differences
from besag.files.writing import ParquetWriter
from besag.samplers.kernel import Info
from besag.samplers.run import read, restore, save

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
        stopped = self.state_path.exists() and not self.parquet
        if not resume and self.path.exists() and (stopped or self.path.stat().st_size):
            go_on = "go on with it (resume), or " if stopped else ""
            raise BesagError(f"{str(path)!r} exists already: {go_on}choose another file.")
        if resume and not (stopped and self.path.exists()):
            raise BesagError(
                f"there is no run to go on with: that takes both {str(path)!r} and {str(self.state_path)!r}. "
                "Leave resume out to begin one."
            )
        if not self.path.parent.is_dir():
            raise BesagError(f"no such folder: {str(self.path.parent)!r}, to write {str(path)!r} in.")
        self.resume = resume
        self.saved = float("-inf")  # the first state is saved at once
        self.state: Any = None
        self.file: Any = None
        self.rows: list[dict[str, Any]] = []  # for Parquet, not written yet
        self.names: list[str] = []  # its columns

    def begin(self, initial: Callable[[], Any]) -> Any:
        """The state to go on from, or None to begin; opens the file, without what came after that state.

        `initial` may run the network for long: all that can be wrong on disk is looked at before.
        """
        state = None
        if self.resume:
            arrays, about = read(self.state_path)
            self._refuse_another(about)
            end = self._end(arrays[".step"].item(), len(arrays[".ids"]))
            state, _ = restore(initial(), self.state_path)
            os.truncate(self.path, end)
        elif not self.parquet:
            self.state_path.unlink(missing_ok=True)  # of a trace that is gone
        if self.parquet:
            self.file = ParquetWriter(str(self.path))
        else:
            self.file = open(self.path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed by __exit__)
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
        if self.state is not None:
            self._save()
            self._write_rows()
        if self.file is not None:
            self.file.close()
            if self.state is None and not self.resume:
                self.path.unlink(missing_ok=True)  # nothing was said

    def _save(self) -> None:
        if not self.parquet:
            self.file.flush()
            save(self.state, self.state_path, self.about)
        self.saved = time.monotonic()

    def _write(self, rows: list[dict[str, Any]]) -> None:
        if not self.parquet:
            self.file.writelines(map(json_line, rows))
            return
        self.rows += rows
        if rows[0]["step"] > 0:  # step 0 has no numbers, and the first rows set the columns
            self._write_rows()

    def _write_rows(self) -> None:
        """To Parquet, all with the columns of the first rows that have numbers."""
        rows, self.rows = self.rows, []
        self.names = self.names or list(dict.fromkeys(name for row in rows for name in row))
        for row in rows:
            self.file.write({name: _number(row.get(name)) for name in self.names}, {})

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
