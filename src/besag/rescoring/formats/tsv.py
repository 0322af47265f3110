"""TSV with a header: utt, text, score, perhaps ref and source, one hypothesis a line; other columns stay.

The lines of an utterance stand together. `rank`, where it is there, is the new place when lists are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from besag.errors import BesagError, quoted
from besag.files.cells import tsv_line
from besag.files.rows import NoRows, Row
from besag.files.rows import read as rows_of
from besag.files.whole import write_whole
from besag.rescoring.formats.reading import number, text_field
from besag.rescoring.lists import Hypothesis, NBest

_OURS = ("utt", "text", "score", "ref", "source")
_BESIDE = {"ref": "references", "source": "sources"}  # one for all hypotheses of an utterance


def read(path: str) -> Iterator[NBest]:
    try:
        yield from _lists(path)
    except NoRows:
        return  # `sound` says that there is nothing


def _lists(path: str) -> Iterator[NBest]:
    for utt, rows in groupby(rows_of(path, "tsv", escaped=True), key=_utt):
        members = [(row.where, _cells(row)) for row in rows]
        beside: dict[str, str | None] = {}
        for name, several in _BESIDE.items():
            told = {cells[name] for _, cells in members if cells.get(name) is not None}
            if len(told) > 1:
                raise BesagError(f"{members[0][0]}: {quoted(utt)} has several {several}: {quoted(sorted(told))}")
            beside[name] = next(iter(told), None)
        hypotheses = tuple(
            Hypothesis(
                text_field(cells, "text", where),
                number(cells.get("score"), where),
                {name: value for name, value in cells.items() if name not in _OURS},
            )
            for where, cells in members
        )
        yield NBest(utt, hypotheses, beside["ref"], source=beside["source"])


def write(lists: Sequence[NBest], path: str) -> None:
    first = lists[0]
    there = {
        "ref": any(one.reference is not None for one in lists), "source": any(one.source is not None for one in lists)
    }  # fmt: skip
    names = [*(name for name in _OURS if there.get(name, True)), *first.hypotheses[0].carried]
    lines = [tsv_line(names)]
    for one in lists:
        for rank, each in enumerate(one.hypotheses, 1):
            cells: Mapping[str, Any] = {
                **each.carried, **({"rank": rank} if "rank" in each.carried else {}),
                "utt": one.utt, "text": each.text, "score": each.score, "ref": one.reference or "",
                "source": one.source or "",
            }  # fmt: skip
            lines.append(tsv_line([str(cells[name]) for name in names]))
    write_whole(path, "".join(lines))


def _cells(row: Row) -> Mapping[str, Any]:
    assert not isinstance(row.values, str)
    return row.values


def _utt(row: Row) -> str:
    return text_field(_cells(row), "utt", row.where)
