"""JSON Lines: {"utt": "…", "ref": "…", "source": "…", "hyps": [{"text": "…", "score": -1.2}, …]}; other fields stay.

`rank`, where hypotheses have it, is their new place when they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from besag.errors import BesagError, quoted
from besag.files.cells import json_line
from besag.files.rows import read as rows_of
from besag.files.whole import write_whole
from besag.rescoring.formats.reading import number, text_field
from besag.rescoring.lists import Hypothesis, NBest

_OURS, _ITS = ("utt", "ref", "source", "hyps"), ("text", "score")


def read(path: str) -> Iterator[NBest]:
    for row in rows_of(path, "jsonl"):
        values, where = row.values, row.where
        if isinstance(values, str):
            raise BesagError(f"{where} is a text: give an object with utt and hyps")
        hyps = values.get("hyps")
        if not isinstance(hyps, list) or not all(isinstance(one, dict) for one in hyps):
            raise BesagError(f"{where}: hyps is {quoted(hyps)}, and must be a list of objects with text and score")
        hypotheses = tuple(
            Hypothesis(text_field(one, "text", where), number(one.get("score"), where), _others(one, _ITS))
            for one in hyps
        )
        reference = text_field(values, "ref", where) if values.get("ref") is not None else None
        source = text_field(values, "source", where) if values.get("source") is not None else None
        yield NBest(text_field(values, "utt", where), hypotheses, reference, _others(values, _OURS), source)


def write(lists: Sequence[NBest], path: str) -> None:
    write_whole(path, "".join(json_line(_row(one)) for one in lists))


def _row(one: NBest) -> dict[str, Any]:
    hyps = [
        {**({"rank": rank} if "rank" in each.carried else {}), "text": each.text, "score": each.score,
         **_others(each.carried, ("rank",))}
        for rank, each in enumerate(one.hypotheses, 1)
    ]  # fmt: skip
    beside = {"ref": one.reference, "source": one.source}
    return {"utt": one.utt, **{name: text for name, text in beside.items() if text is not None}, "hyps": hyps,
            **one.carried}  # fmt: skip


def _others(row: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in known}
