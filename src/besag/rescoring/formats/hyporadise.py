"""HyPoradise (Chen et al. 2023): a JSON list of {"input": ["best", "second", …], "output": "reference"}.

The published lists have no scores; where `score` is a list beside `input`, it is read. Lists are called 1, 2, … by
their place, but by `id` where they have one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from besag.errors import BesagError, quoted
from besag.files.whole import write_whole
from besag.rescoring.formats.reading import document, number, text_field
from besag.rescoring.lists import Hypothesis, NBest

_OURS = ("input", "output", "score")


def read(path: str) -> Iterator[NBest]:
    found = document(path)
    if not isinstance(found, list):
        raise BesagError(f"{path}: HyPoradise's file is a JSON list, and this is {quoted(found)}")
    for place, entry in enumerate(found, 1):
        where = f"{path}, entry {place}"
        texts = entry.get("input") if isinstance(entry, dict) else None
        if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise BesagError(f"{where}: {quoted(entry)} has no list of texts as its input")
        scores = entry.get("score") or [None] * len(texts)
        if not isinstance(scores, list) or len(scores) != len(texts):
            raise BesagError(f"{where}: {len(texts)} hypotheses, and the scores are {quoted(scores)}")
        hypotheses = tuple(Hypothesis(text, number(score, where)) for text, score in zip(texts, scores, strict=True))
        reference = text_field(entry, "output", where) if entry.get("output") is not None else None
        others = {name: value for name, value in entry.items() if name not in _OURS}
        yield NBest(str(entry.get("id", place)), hypotheses, reference, others)


def write(lists: Sequence[NBest], path: str) -> None:
    found: list[dict[str, Any]] = []
    for one in lists:
        row = {"input": [each.text for each in one.hypotheses], "score": [each.score for each in one.hypotheses]}
        found.append({**row, **({} if one.reference is None else {"output": one.reference}), **one.carried})
    write_whole(path, json.dumps(found, indent=2, ensure_ascii=False) + "\n")
