"""A study on disk: what was asked, one line for every pair that is done, and the report.

| file | what it holds |
|---|---|
| `study.json` | the settings; a study goes on only with the same ones |
| `pairs.jsonl` | one pair a line, written as soon as it is done |
| `pairs.parquet` | one row for each pair and construction |
| `table.tsv`, `differences.tsv` | means with intervals; paired differences with p-values |
| `nll-by-distance.png` | the picture |

Rows come in the order of the texts, and what is asked for the pairs of a block runs together. After each block
`study.json` notes how many rows are done; a study that was cut off goes on after them, and what came later is cut away
and found again. Where `study.json` cannot be read, nobody knows what the rows belong to: they are set aside under
another name, and the study begins anew. One process at a time writes in a folder. Knows files, and nothing of models.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from typing import Any

from besag.errors import BesagError, quoted, require
from besag.files.appending import Appended
from besag.files.claim import LOCK, Claim
from besag.files.progress import differences
from besag.files.whole import whole, write_whole
from besag.files.writing import write_rows
from besag.study.pairs import PairRow
from besag.study.report import Report

KIND = "besag pair study"
SETTINGS, ROWS, PICTURE, DONE = "study.json", "pairs.jsonl", "nll-by-distance.png", "done"
WRITTEN = (SETTINGS, ROWS, PICTURE, "pairs.parquet", "table.tsv", "differences.tsv")
DRAFT = ".study-draft-"  # of study.json, left by a process that was killed
NOTED = ("kind", "file", DONE)  # told, but no reason to refuse


class Damaged(BesagError):
    """What should say the settings of a study cannot be read."""


def checksum(texts: Sequence[str]) -> str:
    """The same texts in the same order, and no others, have it."""
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


class Folder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._rows: Appended | None = None
        self._claim: Claim | None = None
        self._known: dict[str, Any] = {}  # what study.json says

    def begin(self, settings: Mapping[str, Any]) -> tuple[int, Any]:
        """Start a study, or go on with one of the same settings: how many of its rows are done, and with what state."""
        if self.path.exists() and not self.path.is_dir():
            raise BesagError(f"{str(self.path)!r} is a file: a study is written into a folder")
        self._refuse_files_of_others()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            raise BesagError(f"cannot make the folder {str(self.path)!r}: {failure.strerror}") from failure
        self._claim = Claim(self.path)
        try:
            return self._begin(json.loads(json.dumps(settings)))  # as it will be read back
        except BesagError:
            self.close()
            raise

    def _begin(self, settings: dict[str, Any]) -> tuple[int, Any]:
        try:
            before = self._settings() if (self.path / SETTINGS).exists() else {}
        except Damaged as damaged:
            self._set_aside(damaged)
            before = {}
        self._rows = Appended(str(self.path / ROWS))
        if before and self._whole_lines():
            self._refuse_others(before, settings)
        done = before.get(
            DONE, {"rows": self._whole_lines() if before else 0, "state": None}
        )  # none: of an earlier besag
        if done["rows"]:
            self._rows.keep(self._end_of(done["rows"]))
        self._known = {"kind": KIND, **settings}
        self.note(done["rows"], done["state"])  # before there is a row, so that rows are always somebody's
        self._rows.append(b"")  # cut off
        return done["rows"], done["state"]

    def append(self, row: PairRow) -> None:
        assert self._rows is not None, "begin first"
        line = json.dumps(row.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"
        self._rows.append(line.encode("utf-8"))
        self._rows.flush()

    def note(self, rows: int, state: Any) -> None:
        """So many rows are done, and stay; a study that goes on is given the state of now."""
        assert self._rows is not None, "begin first"
        self._rows.size()  # on disk, before the note says so
        noted = {**self._known, DONE: {"rows": rows, "state": state}}
        text = json.dumps(noted, indent=2)  # in ASCII: names of files may hold what is no text
        write_whole(self.path / SETTINGS, text + "\n")

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
        if self._claim is not None:
            self._claim.release()

    def report(self) -> Report:
        """What is there so far."""
        try:
            settings = self._settings()
        except Damaged as damaged:
            if not (self.path / ROWS).exists():
                raise
            warnings.warn(f"{damaged}; the report says nothing of the settings", stacklevel=2)
            settings = {}
        try:
            lines = (self.path / ROWS).read_bytes().split(b"\n")[:-1]  # what follows the last line end is torn
        except OSError as failure:
            raise BesagError(f"{str(self.path)!r} holds no {ROWS}: {failure.strerror}") from failure
        rows = []
        for number, line in enumerate(lines, 1):
            try:
                rows.append(PairRow.from_dict(json.loads(line)))
            except (ValueError, TypeError, KeyError, AttributeError) as failure:
                raise BesagError(f"{self.path / ROWS}, line {number} is no row of a study: {failure!r}") from failure
        return Report(tuple(rows), {name: value for name, value in settings.items() if name not in ("kind", DONE)})

    def write(self, report: Report) -> None:
        """The report's files, over those of an earlier one."""
        for name, rows in (
            ("pairs.parquet", report.records()),
            ("table.tsv", report.table()),
            ("differences.tsv", report.differences(against=("ag", "stationary"))),
        ):
            write_rows(self.path / name, list(rows))
        figure = report.plot()
        with whole(self.path / PICTURE) as draft:
            figure.savefig(draft, dpi=150)
        require("matplotlib.pyplot", extra="plot").close(figure)

    def _settings(self) -> dict[str, Any]:
        path = self.path / SETTINGS
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except OSError as failure:
            raise BesagError(
                f"{str(self.path)!r} is no study: it holds no {SETTINGS} ({failure.strerror})"
            ) from failure
        except (ValueError, RecursionError) as failure:
            raise Damaged(f"{path} is not JSON: {quoted(str(failure))}") from failure
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise BesagError(f"{path} is not that of a study")
        done = found.get(DONE, {"rows": 0, "state": None})
        if not isinstance(done, dict) or not isinstance(done.get("rows"), int) or "state" not in done:
            raise Damaged(f"{path} does not say how far the study is")
        return found

    def _refuse_others(self, before: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        differ = differences(
            *({name: value for name, value in one.items() if name not in NOTED} for one in (before, settings))
        )
        if differ:
            raise BesagError(
                f"{str(self.path)!r} holds a study with other settings: {'; '.join(differ)}. Go on with the same ones, "
                "or name another folder"
            )

    def _refuse_files_of_others(self) -> None:
        names = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
        there = {name for name in names if name != LOCK and not name.startswith(DRAFT)}
        if there and (SETTINGS not in there or self._is_anothers(there)):
            raise BesagError(
                f"{str(self.path)!r} holds files, and none is the {SETTINGS} of a study: name another folder"
            )

    def _is_anothers(self, there: set[str]) -> bool:
        """A study.json that cannot be read is ours if nothing stands beside it but what a study writes."""
        try:
            self._settings()
        except Damaged:
            return any(name not in WRITTEN and not name.startswith((".", ROWS, SETTINGS)) for name in there)
        return False

    def _set_aside(self, damaged: Damaged) -> None:
        """The rows of nobody knows what, and what should say it: under names that are free."""
        kept = []
        for name in (SETTINGS, ROWS):
            path = self.path / name
            if path.exists() and path.stat().st_size:
                number = next(at for at in count(1) if not path.with_name(f"{name}.{at}").exists())
                path.rename(path.with_name(f"{name}.{number}"))
                kept.append(f"{name}.{number}")
        said = f"; what is there is set aside as {' and '.join(kept)}" if kept else ""
        warnings.warn(f"{damaged}: the study begins anew{said}", stacklevel=2)

    def _whole_lines(self) -> int:
        try:
            return (self.path / ROWS).read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def _end_of(self, rows: int) -> int:
        """Where so many rows end, in bytes."""
        end = found = 0
        with suppress(FileNotFoundError), open(self.path / ROWS, "rb") as file:
            for line in islice(file, rows):
                found += line.endswith(b"\n")
                end += len(line)
        if found < rows:
            raise BesagError(
                f"{str(self.path / ROWS)!r} has lost rows: {rows:,} of it were done, and there are {found:,}. Put a "
                "whole copy in its place, or name another folder"
            )
        return end
