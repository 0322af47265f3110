"""Results in a folder, and back. Metrics are computed from the rows, so a folder that is read gives the same values.

| file | what it holds |
|---|---|
| `items.jsonl` | a row for each item of each part (suite, model, method), as they were judged |
| `figures.tsv` | every figure with n, standard error, interval, ties and direction |
| `run.json` | which suites with which options, models, methods; the version of besag |
| `report.html` | all of it on one page that needs nothing else |
| `NAME-….json` | what the publishers of a suite want to be sent (`documents` of a suite), a number for each part |

`run.json` is written last, and then the note of how far the items are is removed: a folder is whole that has the one
and not the other. Knows files, and nothing of models.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from besag.errors import BesagError, quoted
from besag.evaluation.evaluation import Evaluation, Part
from besag.evaluation.suite import suite
from besag.files.lines import lines_of
from besag.files.rows import parsed
from besag.files.whole import write_whole
from besag.files.writing import write_rows
from besag.registry import options
from besag.results.data import INFINITE, json_ready

ITEMS, FIGURES, RUN, REPORT = "items.jsonl", "figures.tsv", "run.json", "report.html"
KIND = "besag evaluation"
FORMAT = 2  # of rows: another one is not read
NAMED = ("suite", "model", "method")  # what says which part a row belongs to
_INFINITE_TEXT = re.compile(r"\\*-?Infinity")


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as it will be read back from a file in which it was `written`."""
    return {name: revived(value) for name, value in written(row).items()}


def written(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for a JSON file: ∞ is "Infinity", and a text that reads so has a backslash before it."""
    return dict(json_ready(_marked(row)))


def _marked(value: Any) -> Any:
    if isinstance(value, str):
        return f"\\{value}" if _INFINITE_TEXT.fullmatch(value) else value
    if isinstance(value, Mapping):
        return {name: _marked(one) for name, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _marked(value._asdict())
    return [_marked(one) for one in value] if isinstance(value, list | tuple | set | frozenset) else value


def revived(value: Any) -> Any:
    """Return what was `written`: null is nan, "Infinity" a number, and the text that reads so a text again."""
    if isinstance(value, list):
        return [revived(one) for one in value]
    if isinstance(value, dict):
        return {name: revived(one) for name, one in value.items()}
    if isinstance(value, str):
        return value[1:] if value[:1] == "\\" and _INFINITE_TEXT.fullmatch(value) else INFINITE.get(value, value)
    return math.nan if value is None else value


def write(folder: str | os.PathLike[str], found: Sequence[Evaluation], settings: Mapping[str, Any]) -> None:
    """Everything but the items, which were written as they came."""
    from besag.evaluation.report import page

    place = Path(folder)
    write_rows(place / FIGURES, [{**row, "ties": "" if row["ties"] is None else row["ties"]}
                                 for one in found for row in one.table()])  # fmt: skip
    write_whole(place / REPORT, page(found, settings))
    for one in found:
        for number, part in enumerate(one.parts, 1):
            for name, content in one.suite.documents([row for row in part.rows if row["status"] == "ok"]).items():
                several = f"-{number}" if len(one.parts) > 1 else ""
                write_whole(place / f"{one.suite.name}-{name}{several}.json", json.dumps(json_ready(content)) + "\n")
    suites = {one.suite.name: {option.name: getattr(one.suite, option.name) for option in options(type(one.suite))}
              for one in found}  # fmt: skip
    parts = [
        {"suite": one.suite.name, "model": part.model, "method": part.method, "dtype": part.dtype,
         "items": len(part.rows)}
        for one in found for part in one.parts
    ]  # fmt: skip
    note = {"kind": KIND, "format": FORMAT, **settings, "suites": suites, "parts": parts}
    write_whole(place / RUN, json.dumps(json_ready(note), indent=1, ensure_ascii=False) + "\n")


def is_complete(folder: str | os.PathLike[str]) -> bool:
    """Return whether an evaluation has ended in this folder, so that `read` reads it."""
    return (Path(folder) / RUN).exists() and not is_begun(folder)


def is_begun(folder: str | os.PathLike[str]) -> bool:
    """Return whether an evaluation in this folder was stopped and can be resumed."""
    return (Path(folder) / f"{ITEMS}.progress").exists()


def read(folder: str | os.PathLike[str]) -> list[Evaluation]:
    """What a folder holds, a suite each."""
    place = Path(folder)
    note = _note(place)
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for number, line in lines_of(str(place / ITEMS)):
        row = revived(parsed(line, f"{place / ITEMS}, line {number}"))
        rows.setdefault(tuple(str(row.get(name)) for name in NAMED), []).append(row)
    found = []
    for name, chosen in note["suites"].items():
        one = suite(name, **{key: tuple(value) if isinstance(value, list) else value for key, value in chosen.items()})
        own = [part for part in note["parts"] if part["suite"] == name]
        parts = [Part(one, part["model"], part["method"], part["dtype"],
                      rows.get(tuple(part[key] for key in NAMED), [])) for part in own]  # fmt: skip
        for part, said in zip(parts, own, strict=True):
            if len(part.rows) != said["items"]:
                raise BesagError(
                    f"{str(place)!r} should hold {said['items']:,} items of {name!r} by {part.label}, and {ITEMS} has "
                    f"{len(part.rows):,}: was it changed?"
                )
        found.append(Evaluation(one, tuple(parts)))
    return found


def _note(place: Path) -> dict[str, Any]:
    if not place.is_dir():
        raise BesagError(f"no such folder: {quoted(str(place))}. Results are what `besag eval NAME -o FOLDER` writes")
    if is_begun(place):
        raise BesagError(f"{str(place)!r} is not finished: go on with the command that began it, and --resume")
    try:
        note = json.loads((place / RUN).read_text(encoding="utf-8"))
        if note["kind"] != KIND or not {"suites", "parts"} <= note.keys():
            raise ValueError("it is none of an evaluation")
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise BesagError(
            f"{str(place)!r} holds no results: {RUN} cannot be read ({failure}). They are what `besag eval NAME -o "
            "FOLDER` writes"
        ) from failure
    if note.get("format") != FORMAT:
        raise BesagError(
            f"{str(place)!r} has rows of format {note.get('format', 1)}, of an older besag, and only format {FORMAT} "
            "is read: run the evaluation again"
        )
    return dict(note)
