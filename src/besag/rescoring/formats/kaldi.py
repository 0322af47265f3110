"""Kaldi: a folder with `text` (or words_text), whose lines are `utt-1 words…`, `utt-2 words…`, and the scores of both.

score (or scores)      utt-1 −12.3        log-scores, the higher the better
ac_cost and lm_cost    utt-1 12.3         costs; the score is minus their sum (lm_cost may be missing)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from besag.errors import BesagError, quoted
from besag.files.folders import whole_folder
from besag.files.lines import lines_of
from besag.rescoring.formats.reading import number
from besag.rescoring.lists import Hypothesis, NBest

TEXTS, SCORES, COSTS = ("text", "words_text"), ("score", "scores"), ("ac_cost", "lm_cost")
_RANKED = re.compile(r"(.+)-(\d+)")


def table(path: str) -> dict[str, str]:
    """`key words…` by key; there may be no words."""
    found: dict[str, str] = {}
    for place, line in lines_of(path):
        if not line.strip():
            continue
        key, _, words = line.strip().partition(" ") if "\t" not in line else line.strip().partition("\t")
        if key in found:
            raise BesagError(f"{path}, line {place}: {quoted(key)} is there twice")
        found[key] = words.strip()
    return found


def scores(path: str) -> dict[str, float | None]:
    return {key: number(value, f"{path}, {quoted(key)}") for key, value in table(path).items()}


def read(path: str) -> Iterator[NBest]:
    texts = next((table(file) for file in _there(path, TEXTS)), None)
    if texts is None:
        raise BesagError(f"{path!r} has no file called text")
    known = _scores(path)
    unknown = next((key for key in known if key not in texts), None)
    if unknown is not None:
        raise BesagError(f"{path}: {quoted(unknown)} has a score, and no text")
    lists: dict[str, dict[int, Hypothesis]] = {}
    for key, text in texts.items():
        ranked = _RANKED.fullmatch(key)
        if ranked is None:
            raise BesagError(f"{path}: {quoted(key)} does not end in -1, -2 …, by which Kaldi numbers hypotheses")
        lists.setdefault(ranked[1], {})[int(ranked[2])] = Hypothesis(text, known.get(key))
    for utt, by_rank in lists.items():
        yield NBest(utt, tuple(by_rank[rank] for rank in sorted(by_rank)))


def write(lists: Sequence[NBest], path: str) -> None:
    with whole_folder(path) as folder:
        ranked = [(f"{one.utt}-{rank}", each) for one in lists for rank, each in enumerate(one.hypotheses, 1)]
        put(folder / "text", [f"{key} {each.text}".rstrip() for key, each in ranked])
        put(folder / "score", [f"{key} {each.score:.8g}" for key, each in ranked])


def put(path: Path, lines: Sequence[str]) -> None:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))


def _scores(path: str) -> dict[str, float | None]:
    direct = next((scores(file) for file in _there(path, SCORES)), None)
    if direct is not None:
        return direct
    costs = [scores(file) for file in _there(path, COSTS)]
    for one in costs[1:]:
        if one.keys() != costs[0].keys():
            raise BesagError(f"{path}: ac_cost and lm_cost are not of the same hypotheses")
    return {key: -sum(one[key] or 0.0 for one in costs) for key in costs[0]} if costs else {}


def _there(path: str, names: Sequence[str]) -> list[str]:
    return [file for name in names if os.path.isfile(file := os.path.join(path, name))]
