"""A run on disk: what the chains said on the way, and the state to go on from.

    FILE          one row for each kept step and chain, JSON Lines or Parquet
    FILE.state    the last saved state, as arrays, with what it is the state of

The state is written after the rows it follows, so a run that is killed goes on from the last saved step; rows beyond it
are cut off and written again, the same. Parquet cannot be cut, so only JSON Lines can be gone on with.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from besag.errors import BesagError, require
from besag.samplers.kernel import Info
from besag.samplers.run import restore, save

SAVED = 20.0  # seconds between two savings of the state


class Record:
    """Use it as a context: leaving it saves the state, whatever happened."""

    def __init__(self, path: str | Path, *, about: dict[str, Any], every: int, resume: bool = False) -> None:
        self.path, self.about, self.every = Path(path), about, every
        self.state_path = self.path.with_name(self.path.name + ".state")
        if self.path.suffix not in (".jsonl", ".parquet"):
            raise BesagError(f"{str(path)!r}: what chains say is recorded as .jsonl or .parquet.")
        self.parquet = self.path.suffix == ".parquet"
        if resume and self.parquet:
            raise BesagError(f"{str(path)!r}: a Parquet file cannot be gone on with; record as .jsonl for that.")
        if not resume and self.path.exists():
            raise BesagError(f"{str(path)!r} exists already: go on with it (resume), or choose another file.")
        if not self.path.parent.is_dir():
            raise BesagError(f"no such folder: {str(self.path.parent)!r}, to write {str(path)!r} in.")
        self.resume = resume
        self.saved = time.monotonic()
        self.state: Any = None
        self.file: Any = None

    def begin(self, initial: Callable[[], Any]) -> Any:
        """The state to go on from, or None to begin; opens the file, without what came after that state."""
        state = None
        if self.resume:
            state = self._last(initial())
            self._cut(state.step)
        elif self.parquet:
            require("pyarrow", extra="bulk")
        else:
            self.file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115 (closed by __exit__)
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

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *_: object) -> None:
        if self.state is not None:
            self._save()
        if self.file is not None:
            self.file.close()

    def _save(self) -> None:
        if not self.parquet:
            self.file.flush()
            save(self.state, self.state_path, self.about)
        self.saved = time.monotonic()

    def _write(self, rows: list[dict[str, Any]]) -> None:
        if not self.parquet:
            self.file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            return
        arrow, parquet = require("pyarrow", extra="bulk"), require("pyarrow.parquet", extra="bulk")
        named = {name for row in rows for name in row}
        table = arrow.Table.from_pylist([{name: _number(row.get(name)) for name in sorted(named)} for row in rows])
        if self.file is None:
            self.columns = table.schema
            self.file = parquet.ParquetWriter(self.path, table.schema)
        self.file.write_table(table.select(self.columns.names).cast(self.columns))

    def _last(self, like: Any) -> Any:
        if not self.path.exists() or not self.state_path.exists():
            raise BesagError(f"there is no run to go on with in {str(self.path)!r} and {str(self.state_path)!r}.")
        state, about = restore(like, self.state_path)
        for name, value in self.about.items():
            if about.get(name) != value:
                raise BesagError(
                    f"{str(self.path)!r} is a run with {name} {about.get(name)!r}, and {value!r} was given: go on with "
                    "the same settings, or record to another file."
                )
        return state

    def _cut(self, step: int) -> None:
        """Leave out rows after `step`, and a last line that was not written whole."""
        draft = self.path.with_name(self.path.name + ".unfinished")
        with open(self.path, encoding="utf-8", errors="replace") as old, open(draft, "w", encoding="utf-8") as new:
            for line in old:
                try:
                    if json.loads(line)["step"] > step:
                        break
                except (ValueError, KeyError):
                    break
                new.write(line)
        os.replace(draft, self.path)
        self.file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115 (closed by __exit__)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, bool | np.bool_) else value
