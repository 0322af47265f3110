"""Minimal pairs from files: BLiMP's JSON Lines, Marvin and Linzen's, and tables of two columns.

Knows formats and the names that fields go by; nothing of scores. Every pair carries the file and line it stands in, so
that whatever is wrong with it can be found.

| | called |
|---|---|
| the acceptable sentence | sentence_good, good, acceptable |
| the other one | sentence_bad, bad, unacceptable |
| paradigm | UID, paradigm, task; if not given, the name of the file |
| phenomenon | linguistics_term, phenomenon; if not given, the paradigm (of Marvin and Linzen's tasks: by their names) |
| name of the pair | pairID, pair_id, pair, id; if not given, the line |
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from besag.errors import BesagError, nearest
from besag.packed import BROKEN, OPENERS, unpacked

GOOD = ("sentence_good", "good", "acceptable")
BAD = ("sentence_bad", "bad", "unacceptable")
PARADIGM = ("uid", "paradigm", "task")
PHENOMENON = ("linguistics_term", "phenomenon")
NAME = ("pairid", "pair_id", "pair", "id")
ROLES = {"good": GOOD, "bad": BAD, "paradigm": PARADIGM, "phenomenon": PHENOMENON, "name": NAME}
UNNAMED = ("good", "bad", "paradigm", "phenomenon")  # the columns of a table without a header, in this order


@dataclass(frozen=True, slots=True)
class MinimalPair:
    """Two sentences that differ in as little as possible, and the one that people accept."""

    good: str
    bad: str
    paradigm: str = "pairs"
    phenomenon: str = ""  # what several paradigms have in common; empty: the paradigm is its own
    name: str = ""
    where: str = ""  # "adjunct_island.jsonl, line 3"

    @property
    def group(self) -> str:
        return self.phenomenon or self.paradigm


def read_pairs(path: str | os.PathLike[str], limit: int | None = None) -> list[MinimalPair]:
    """The first `limit` pairs of a file (all: None), JSON Lines, TSV or CSV by its ending; .gz, .xz, .bz2 unpacked.

    A table has a header when its first line names both sentences; otherwise its columns are good, bad, paradigm and
    phenomenon, the last two optional.
    """
    path = os.fspath(path)
    plain = Path(path.removesuffix(Path(path).suffix) if Path(path).suffix.lower() in OPENERS else path)
    read = {".jsonl": _json, ".json": _json, ".ndjson": _json, ".csv": _csv, ".tsv": _tsv}.get(
        plain.suffix.lower(), _tsv
    )
    found: list[MinimalPair] = []
    for number, fields in read(path, _lines(path)):
        found.append(_pair(fields, plain.stem, f"{path}, line {number}"))
        if len(found) == limit:
            break
    if not found:
        raise BesagError(f"{path} holds no pairs: it needs lines with an acceptable and an unacceptable sentence")
    return found


def read_texts(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """(text, where it stands) of a file: the lines of plain text (.txt, .md), otherwise both sentences of each pair."""
    path = os.fspath(path)
    plain = path.removesuffix(Path(path).suffix) if Path(path).suffix.lower() in OPENERS else path
    if Path(plain).suffix.lower() in (".txt", ".md", ""):
        return [(line, f"{path}, line {number}") for number, line in _lines(path) if line.strip()]
    return [
        (text, f"{one.where} ({side})")
        for one in read_pairs(path)
        for text, side in ((one.good, "good"), (one.bad, "bad"))
    ]


def _pair(fields: Mapping[str, object], stem: str, where: str) -> MinimalPair:
    known = {name.lower(): value for name, value in fields.items()}
    found: dict[str, Any] = {"paradigm": stem, "name": where.rpartition(" ")[2]}
    for role, names in ROLES.items():
        for name in names:
            if known.get(name) not in (None, ""):
                found[role] = known[name]
                break
    for role, names in (("good", GOOD), ("bad", BAD)):
        if role not in found and not any(name in known for name in names):
            guess = next(filter(None, (nearest(name, fields) for name in names)), "")
            raise BesagError(
                f"{where} has no {names[0]!r} (or {', '.join(names[1:])}); it has {', '.join(fields)}.{guess}"
            )
        if not isinstance(found.setdefault(role, ""), str):
            raise BesagError(f"{where}: the {role} sentence is {found[role]!r}, not a text")
    if "phenomenon" not in found and {"task", "cond"} <= known.keys():
        found["phenomenon"] = _family(str(found["paradigm"]))
    rest = {role: str(value) for role, value in found.items()}
    return MinimalPair(**rest, where=where)


def _family(task: str) -> str:
    """What a task of Marvin and Linzen's is about: their three kinds, told by the names of the tasks."""
    if "npi" in task:
        return "negative_polarity"
    return "reflexive_anaphora" if "reflexive" in task else "subject_verb_agreement"


# ---- formats


def _json(path: str, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as failure:
            where = f"{failure.msg}, at character {failure.pos + 1}"
            raise BesagError(f"{path}, line {number} is not JSON: {where}") from failure
        if not isinstance(value, dict):
            raise BesagError(f"{path}, line {number} is JSON, but no object: {line[:40]}")
        yield number, value


def _tsv(path: str, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Mapping[str, object]]]:
    return _table(path, ((number, line.split("\t")) for number, line in lines if line.strip()))


def _csv(path: str, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Mapping[str, object]]]:
    return _table(path, ((number, next(csv.reader([line]))) for number, line in lines if line.strip()))


def _table(path: str, rows: Iterator[tuple[int, Sequence[str]]]) -> Iterator[tuple[int, Mapping[str, object]]]:
    names: Sequence[str] = ()
    for number, cells in rows:
        if not names:
            said = [cell.strip().lower() for cell in cells]
            if set(said) & set(GOOD) and set(said) & set(BAD):
                names = [cell.strip() for cell in cells]
                continue
            names = UNNAMED[: len(cells)]
        if len(cells) != len(names) or len(cells) < 2:
            raise BesagError(
                f"{path}, line {number} has {len(cells)} cells where {max(len(names), 2)} are needed: the acceptable "
                "sentence, a tab, the other one (and perhaps paradigm and phenomenon), or a header that names them"
            )
        yield number, dict(zip(names, cells, strict=True))


def _lines(path: str) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with unpacked(path) as file:
            for line in file:
                number += 1
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except FileNotFoundError:
        folder = Path(path).parent
        others = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        raise BesagError(f"no such file: {path!r}.{nearest(Path(path).name, others)}") from None
    except UnicodeDecodeError as failure:
        byte = failure.object[failure.start]
        raise BesagError(f"{path}, line {number}, byte {failure.start + 1} (0x{byte:02x}) is not UTF-8") from None
    except IsADirectoryError:
        raise BesagError(f"{path!r} is a folder: name the files in it") from None
    except BROKEN as failure:
        raise BesagError(f"{path} cannot be read beyond line {number}: {failure}") from failure
