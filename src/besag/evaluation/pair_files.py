"""Minimal pairs from files: BLiMP's JSON Lines, Marvin and Linzen's, and tables of two columns.

Knows the names that fields go by; nothing of scores. Every pair carries the file and line it stands in, so
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

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from besag.checks import checked
from besag.errors import BesagError, nearest
from besag.files.columns import columns, text
from besag.files.lines import lines_of
from besag.files.packed import plain_name
from besag.files.rows import NoRows, Row, format_of, read

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


@checked
def read_pairs(
    path: str | os.PathLike[str],
    limit: int | None = None,
    *,
    good: str | None = None,
    bad: str | None = None,
) -> list[MinimalPair]:
    """The first `limit` pairs of a file (all: None), JSON Lines, TSV, CSV or Parquet by its ending, packed or not.

    `good` and `bad` name the columns of the two sentences, where they are not called as above: a name, a number, or a
    path such as `hyps.0.text`. A table has a header when its first line names both sentences; otherwise its columns are
    good, bad, paradigm and phenomenon, the last two optional.
    """
    path = os.fspath(path)
    stem = Path(plain_name(path)).stem
    found: list[MinimalPair] = []
    wanted = {role: name for role, name in (("good", good), ("bad", bad)) if name is not None}
    with suppress(NoRows):
        for row in read(path, format_of(path, "tsv"), header=partial(_header, wanted=tuple(wanted.values()))):
            found.append(_pair(row, stem, wanted))
            if len(found) == limit:
                break
    if not found:
        raise BesagError(f"{path} holds no pairs: it needs lines with an acceptable and an unacceptable sentence")
    return found


def read_texts(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """(text, where it stands) of a file: the lines of plain text (.txt, .md), otherwise both sentences of each pair."""
    path = os.fspath(path)
    if Path(plain_name(path)).suffix.lower() in (".txt", ".md", ""):
        return [(line, f"{path}, line {number}") for number, line in lines_of(path) if line.strip()]
    return [
        (sentence, f"{one.where} ({side})")
        for one in read_pairs(path)
        for sentence, side in ((one.good, "good"), (one.bad, "bad"))
    ]


def _header(cells: list[str], wanted: Sequence[str]) -> tuple[Sequence[str], bool]:
    """Columns named in the first row, or by their places."""
    said = [cell.strip().lower() for cell in cells]
    if (set(said) & set(GOOD) and set(said) & set(BAD)) or any(name in map(str.strip, cells) for name in wanted):
        return [cell.strip() for cell in cells], True
    more = [str(place + 1) for place in range(len(UNNAMED), len(cells))] if wanted else []
    return [*UNNAMED[: len(cells)], *more], False


def _pair(row: Row, stem: str, wanted: Mapping[str, str]) -> MinimalPair:
    fields, where = row.values, row.where
    if isinstance(fields, str):
        raise BesagError(f"{where} is JSON, but no object: {fields[:40]!r}")
    if set(fields) <= {"good"} and not wanted:
        raise BesagError(
            f"{where} has 1 cells where 2 are needed: the acceptable sentence, a tab, the other one (and perhaps "
            "paradigm and phenomenon), or a header that names them"
        )
    known = {name.lower(): value for name, value in fields.items()}
    found: dict[str, Any] = {"paradigm": stem, "name": where.rpartition(" ")[2]}
    for role, names in ROLES.items():
        for name in names:
            if known.get(name) not in (None, ""):
                found[role] = known[name]
                break
    for role, name in wanted.items():
        [column] = columns(list(fields), [name], where)
        found[role] = text(fields, column, where)
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
