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

from besag.characters import shown
from besag.checks import checked
from besag.errors import BesagError, nearest, quoted
from besag.files.cells import cell
from besag.files.columns import columns, listed, text
from besag.files.lines import lines_of
from besag.files.packed import plain_name
from besag.files.rows import NoRows, Row, format_of, named, read

GOOD = ("sentence_good", "good", "acceptable")
BAD = ("sentence_bad", "bad", "unacceptable")
PARADIGM = ("uid", "paradigm", "task")
PHENOMENON = ("linguistics_term", "phenomenon")
NAME = ("pairid", "pair_id", "pair", "id")
SENTENCES = {"good": GOOD, "bad": BAD}
ROLES = {"paradigm": PARADIGM, "phenomenon": PHENOMENON, "name": NAME}
MOST = 2_000_000  # pairs of one file: more is no suite, but a small file that unpacks to a large one
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
    header: bool | None = None,
) -> list[MinimalPair]:
    """The first `limit` pairs of a file (all: None), JSON Lines, TSV, CSV or Parquet by its ending, packed or not.

    `good` and `bad` name the columns of the two sentences, where they are not called as above: a name, a number, or a
    path such as `hyps.0.text`. The first line of a table names its columns (`header`), or (False) it has the columns
    good, bad, paradigm and phenomenon, the last two optional. If not said, that must be plain from the names: a first
    line that has none of those wanted is refused, and never taken for a pair.
    """
    return _read(os.fspath(path), limit, good, bad, header, lenient=True)


def read_texts(
    path: str | os.PathLike[str], *, good: str | None = None, bad: str | None = None, header: bool | None = None
) -> list[tuple[str, str]]:
    """(text, where it stands) of a file: the lines of plain text (.txt, .md), otherwise both sentences of each pair."""
    path = os.fspath(path)
    if Path(plain_name(path)).suffix.lower() in (".txt", ".md", ""):
        return [(line, f"{path}, line {number}") for number, line in lines_of(path) if line.strip()]
    return [
        (sentence, f"{one.where} ({side})")
        for one in _read(path, None, good, bad, header, lenient=False)
        for sentence, side in ((one.good, "good"), (one.bad, "bad"))
    ]


def _read(
    path: str, limit: int | None, good: str | None, bad: str | None, header: bool | None, lenient: bool
) -> list[MinimalPair]:
    stem = Path(plain_name(path)).stem
    found: list[MinimalPair] = []
    wanted = {role: name for role, name in (("good", good), ("bad", bad)) if name is not None}
    names = partial(_header, wanted=tuple(wanted.values()), said=header, path=path)
    with suppress(NoRows):
        for row in read(path, format_of(path, "tsv"), header=names, lenient=lenient):
            found.append(pair_of(row, stem, wanted, lenient))
            if len(found) == limit:
                break
            if len(found) > MOST:
                raise BesagError(f"{path} holds more than {MOST:,} pairs, which are held in memory: cut it")
    if not found:
        raise BesagError(f"{path} holds no pairs: it needs lines with an acceptable and an unacceptable sentence")
    return found


def _header(cells: list[str], wanted: Sequence[str], said: bool | None, path: str) -> tuple[Sequence[str], bool]:
    """The columns as the first row names them, or by their places. Which of the two is never guessed."""
    if said is False:
        if len(cells) < 2:
            raise BesagError(f"{path} has 1 column where 2 are needed: the acceptable sentence and the other one")
        return [*UNNAMED[: len(cells)], *(str(place + 1) for place in range(len(UNNAMED), len(cells)))], False
    stripped = [cell.strip() for cell in cells]
    low = {cell.lower() for cell in stripped}
    if said or (low & set(GOOD) and low & set(BAD)) or any(not name.isdecimal() for name in wanted):
        return named(stripped)
    raise BesagError(
        f"{path} begins with {listed(stripped)}: are these names of columns? None is known. Then say which hold the "
        "sentences, good=NAME and bad=NAME (with numbers: and header: true); if they are sentences, say header: false, "
        "or write good, a tab and bad above them"
    )


def pair_of(row: Row, stem: str, wanted: Mapping[str, str] | None = None, lenient: bool = True) -> MinimalPair:
    """The pair that a row says; `wanted` names its columns, where they are not called as above."""
    fields, where, wanted = row.values, row.where, wanted or {}
    if isinstance(fields, str):
        raise BesagError(f"{where} is JSON, but no object: {quoted(fields[:40])}")
    known: dict[str, list[str]] = {}
    for name in fields:
        known.setdefault(name.lower(), []).append(name)
    sentences = {
        role: text(fields, _sentence(fields, known, role, wanted.get(role), where), where, lenient)
        for role in ("good", "bad")
    }
    about = {"paradigm": stem, "name": where.rpartition(" ")[2]}
    for role, names in ROLES.items():
        given = (fields[spelt] for name in names for spelt in known.get(name, ()))
        value = next((value for value in given if value not in (None, "")), None)
        if value is not None:
            about[role] = shown(cell(value))
    if "phenomenon" not in about and {"task", "cond"} <= known.keys():
        about["phenomenon"] = _family(about["paradigm"])
    return MinimalPair(**sentences, **about, where=where)


def _sentence(
    fields: Mapping[str, object], known: Mapping[str, list[str]], role: str, wanted: str | None, where: str
) -> str:
    """The column of a sentence."""
    if wanted is not None:
        return columns(list(fields), [wanted], where)[0]
    names = SENTENCES[role]
    found = [spelt for name in names for spelt in known.get(name, ())]
    if len(found) > 1:
        raise BesagError(f"{where} has {listed(found)}: which is the {role} sentence? Say {role}=NAME")
    if not found:
        guess = next(filter(None, (nearest(name, fields) for name in names)), "")
        raise BesagError(
            f"{where} has no {names[0]!r} (or {', '.join(names[1:])}), and it has {listed(fields)}: say {role}=NAME."
            f"{guess}"
        )
    return found[0]


def _family(task: str) -> str:
    """What a task of Marvin and Linzen's is about: their three kinds, told by the names of the tasks."""
    if "npi" in task:
        return "negative_polarity"
    return "reflexive_anaphora" if "reflexive" in task else "subject_verb_agreement"
