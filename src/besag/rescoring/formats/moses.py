"""Moses: `id ||| text ||| features ||| score`, one hypothesis a line, those of one sentence together.

Features stay as they are; what stands after the score (an alignment) stays, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from besag.errors import BesagError, quoted
from besag.files.lines import lines_of
from besag.files.whole import write_whole
from besag.rescoring.formats.reading import number
from besag.rescoring.lists import Hypothesis, NBest

BAR = "|||"


def read(path: str) -> Iterator[NBest]:
    for utt, members in groupby(_rows(path), key=lambda row: row[0]):
        yield NBest(utt, tuple(hypothesis for _, hypothesis in members))


def _rows(path: str) -> Iterator[tuple[str, Hypothesis]]:
    for place, line in lines_of(path):
        if not line.strip():
            continue
        where = f"{path}, line {place}"
        parts = [part.strip() for part in line.split(BAR)]
        if len(parts) < 3:
            raise BesagError(f"{where}: {quoted(line)} is not id ||| text ||| features ||| score")
        utt, text, features, *rest = parts
        yield utt, Hypothesis(text, number(rest[0], where) if rest else None, {"features": features, "rest": rest[1:]})


def write(lists: Sequence[NBest], path: str) -> None:
    lines = (
        f" {BAR} ".join([one.utt, each.text, each.carried["features"], f"{each.score:.8g}", *each.carried["rest"]])
        for one in lists
        for each in one.hypotheses
    )
    write_whole(path, "".join(f"{line}\n" for line in lines))
