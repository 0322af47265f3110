"""ESPnet: folders 1best_recog, 2best_recog … with files `text` and `score`, whose lines are `utt words…`.

Scores may be written as tensor(−4.06). Other files of such a folder (token, token_int) go with their hypotheses.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from besag.errors import BesagError, quoted
from besag.files.folders import whole_folder
from besag.rescoring.formats.kaldi import put, scores, table
from besag.rescoring.lists import Hypothesis, NBest


def read(path: str) -> Iterator[NBest]:
    lists: dict[str, list[Hypothesis]] = {}
    rank = 1
    while os.path.isdir(folder := os.path.join(path, f"{rank}best_recog")):
        texts = table(os.path.join(folder, "text"))
        score = os.path.join(folder, "score")
        known = scores(score) if os.path.isfile(score) else {}
        names = sorted(name for name in os.listdir(folder) if name not in ("text", "score"))
        others = {name: table(file) for name in names if os.path.isfile(file := os.path.join(folder, name))}
        for utt, text in texts.items():
            if rank > 1 and len(lists.get(utt, ())) != rank - 1:
                raise BesagError(f"{folder} has {quoted(utt)}, which {rank - 1}best_recog has not")
            carried = {name: found[utt] for name, found in others.items() if utt in found}
            lists.setdefault(utt, []).append(Hypothesis(text, known.get(utt), carried))
        rank += 1
    if rank == 1:
        raise BesagError(f"{path!r} has no folder 1best_recog")
    return (NBest(utt, tuple(hypotheses)) for utt, hypotheses in lists.items())


def write(lists: Sequence[NBest], path: str) -> None:
    with whole_folder(path) as whole:
        for rank in range(max(len(one.hypotheses) for one in lists)):
            there = [(one.utt, one.hypotheses[rank]) for one in lists if rank < len(one.hypotheses)]
            folder = whole / f"{rank + 1}best_recog"
            folder.mkdir()
            put(folder / "text", [f"{utt} {each.text}".rstrip() for utt, each in there])
            put(folder / "score", [f"{utt} {each.score:.8g}" for utt, each in there])
            for name in dict.fromkeys(name for _, each in there for name in each.carried):
                kept = [(utt, each.carried[name]) for utt, each in there if name in each.carried]
                put(folder / name, [f"{utt} {words}".rstrip() for utt, words in kept])
