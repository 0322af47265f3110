"""A study on disk: what was asked, one line for every pair that is done, and the report.

| file | what it holds |
|---|---|
| `study.json` | the settings; a study goes on only with the same ones |
| `pairs.jsonl` | one pair a line, written as soon as it is done |
| `pairs.parquet` | one row for each pair and construction |
| `table.tsv`, `differences.tsv` | means with intervals; paired differences with p-values |
| `nll-by-distance.png` | the picture |

Rows come in the order of the texts, so the number of whole lines says where to go on; a line that was cut off while it
was written is cut away. Knows files, and nothing of models.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from besag.errors import BesagError, require
from besag.files.progress import differences
from besag.files.whole import whole, write_whole
from besag.files.writing import write_rows
from besag.study.pairs import PairRow
from besag.study.report import Report

KIND = "besag pair study"
SETTINGS, ROWS = "study.json", "pairs.jsonl"
NOTED = ("kind", "file")  # told, but no reason to refuse


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
        self._rows: IO[str] | None = None

    def begin(self, settings: Mapping[str, Any]) -> int:
        """Start a study, or go on with one of the same settings: how many of its rows are done already."""
        if self.path.exists() and not self.path.is_dir():
            raise BesagError(f"{str(self.path)!r} is a file: a study is written into a folder")
        known = json.loads(json.dumps(settings))  # as it will be read back
        before = self._settings() if (self.path / SETTINGS).exists() else {}
        if not before and self.path.exists() and any(self.path.iterdir()):
            raise BesagError(
                f"{str(self.path)!r} holds files, and none is the {SETTINGS} of a study: name another folder"
            )
        whole = self._cut()
        if whole:
            self._refuse_others(before, known)
        else:  # nothing was measured under other settings
            self.path.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"kind": KIND, **known}, indent=2)  # in ASCII: names of files may hold what is no text
            write_whole(self.path / SETTINGS, text + "\n")
        self._rows = open(self.path / ROWS, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed by `close`)
        return whole

    def append(self, row: PairRow) -> None:
        assert self._rows is not None, "begin first"
        self._rows.write(json.dumps(row.to_dict(), ensure_ascii=False, allow_nan=False) + "\n")
        self._rows.flush()

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()

    def report(self) -> Report:
        """What is there so far."""
        settings = self._settings()
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
        return Report(tuple(rows), {name: value for name, value in settings.items() if name != "kind"})

    def write(self, report: Report) -> None:
        """The report's files, over those of an earlier one."""
        for name, rows in (
            ("pairs.parquet", report.records()),
            ("table.tsv", report.table()),
            ("differences.tsv", report.differences(against=("ag", "stationary"))),
        ):
            write_rows(self.path / name, list(rows))
        figure = report.plot()
        with whole(self.path / "nll-by-distance.png") as draft:
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
        except ValueError as failure:
            raise BesagError(f"{path} is not JSON: {failure}") from failure
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise BesagError(f"{path} is not that of a study")
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

    def _cut(self) -> int:
        """Cut a torn last line off, and count the whole ones."""
        path = self.path / ROWS
        if not path.exists():
            return 0
        with open(path, "r+b") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)
        return content.count(b"\n")
