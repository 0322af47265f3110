"""What was done when: a line for each shard, so that another shell can tell how far a job is.

The shards themselves say which are finished; the journal says how many rows had which status, and how fast it goes. On
a disk it grows line by line; behind a URL it is written anew from time to time.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import NamedTuple

from besag.bulk.store import Folder
from besag.bulk.working import Note
from besag.files.appending import Appended

LATELY = 100  # notes from which the rate is told
EVERY = 30.0  # seconds between two versions behind a URL


class Journal:
    NAME = "journal.jsonl"

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        lines, kept = read(folder)
        self.totals = Totals.of(lines)
        self._lines = [note.line() for note in lines] if folder.remote else []
        self._written = time.monotonic()
        self._file: Appended | None = None
        if not folder.remote:
            self._file = Appended(folder.at(self.NAME))
            self._file.keep(kept)

    def add(self, note: Note) -> None:
        self.totals.add(note)
        if self._file is not None:
            self._file.append(f"{note.line()}\n".encode())
            self._file.flush()
            return
        self._lines.append(note.line())
        if time.monotonic() - self._written > EVERY:
            self._save()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        else:
            self._save()

    def _save(self) -> None:
        self.folder.write(self.NAME, "".join(f"{line}\n" for line in self._lines).encode())
        self._written = time.monotonic()


def read(folder: Folder) -> tuple[list[Note], int]:
    """The notes so far, and how many bytes they are: a kill may have torn the last line."""
    if not folder.has(Journal.NAME):
        return [], 0
    notes, kept = [], 0
    for line in folder.read(Journal.NAME).splitlines(keepends=True):
        try:
            notes.append(Note.of(line.decode()))
        except (ValueError, TypeError):
            break
        if not line.endswith(b"\n"):
            notes.pop()
            break
        kept += len(line)
    return notes, kept


class Totals:
    """Sums over shards, each counted as it was done last."""

    def __init__(self) -> None:
        self.notes: dict[int, Counted] = {}
        self.rows = self.kept = self.tokens = 0
        self.states: Counter[str] = Counter()

    @classmethod
    def of(cls, notes: list[Note]) -> Totals:
        found = cls()
        for note in notes:
            found.add(note)
        return found

    def add(self, note: Note) -> None:
        before = self.notes.get(note.shard)
        if before is not None:
            self._count(before, -1)
        now = Counted(note.rows, note.kept, note.tokens, tuple(note.states.items()))
        self.notes[note.shard] = now
        self._count(now, 1)

    def _count(self, one: Counted, sign: int) -> None:
        self.rows += sign * one.rows
        self.kept += sign * one.kept
        self.tokens += sign * one.tokens
        for state, count in one.states:
            self.states[state] += sign * count

    def unscored(self) -> dict[str, int]:
        return {state: count for state, count in sorted(self.states.items()) if state != "ok" and count}


class Counted(NamedTuple):
    rows: int
    kept: int
    tokens: int
    states: tuple[tuple[str, int], ...]


def rate(notes: list[Note]) -> tuple[float, float] | None:
    """Rows and tokens a second, lately; None where too little was done to tell."""
    lately = notes[-LATELY:]
    seconds = lately[-1].at - lately[0].at if lately else 0.0
    if len(lately) < 2 or seconds <= 0:
        return None
    return sum(note.rows for note in lately[1:]) / seconds, sum(note.tokens for note in lately[1:]) / seconds
