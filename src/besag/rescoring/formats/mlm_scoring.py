"""The JSON of mlm-scoring (Shin et al. 2019, Salazar et al. 2020):

{"utt": {"hyp_1": {"score": -1.2, "text": "…"}, "hyp_2": …, "ref": "…"}, …}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from besag.errors import BesagError, quoted
from besag.files.whole import write_whole
from besag.rescoring.formats.reading import document, number, text_field
from besag.rescoring.lists import Hypothesis, NBest

_HYPOTHESIS = re.compile(r"hyp_(\d+)")


def read(path: str) -> Iterator[NBest]:
    for utt, entry in _object(document(path), path).items():
        where = f"{path}, {quoted(utt)}"
        entry = _object(entry, where)
        numbered = sorted((int(found[1]), key) for key in entry if (found := _HYPOTHESIS.fullmatch(key)))
        hypotheses = []
        for _, key in numbered:
            one = _object(entry[key], f"{where}, {key}")
            score = number(one.get("score"), f"{where}, {key}")
            others = {name: value for name, value in one.items() if name not in ("text", "score")}
            hypotheses.append(Hypothesis(text_field(one, "text", f"{where}, {key}"), score, others))
        reference = text_field(entry, "ref", where) if entry.get("ref") is not None else None
        others = {name: value for name, value in entry.items() if name != "ref" and not _HYPOTHESIS.fullmatch(name)}
        yield NBest(utt, tuple(hypotheses), reference, others)


def write(lists: Sequence[NBest], path: str) -> None:
    found: dict[str, Any] = {}
    for one in lists:
        ranked = {
            f"hyp_{rank}": {"score": hypothesis.score, "text": hypothesis.text, **hypothesis.carried}
            for rank, hypothesis in enumerate(one.hypotheses, 1)
        }
        found[one.utt] = {**ranked, **({} if one.reference is None else {"ref": one.reference}), **one.carried}
    write_whole(path, json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def references(found: Any, path: str) -> dict[str, str]:
    """Of a file of references, or of hypotheses that come with them."""
    entries = _object(found, path).items()
    return {
        utt: one if isinstance(one, str) else text_field(_object(one, f"{path}, {quoted(utt)}"), "ref", path)
        for utt, one in entries
    }


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BesagError(f"{where}: {quoted(value)} is no JSON object, as mlm-scoring writes it")
    return value
