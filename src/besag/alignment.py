"""Where the pieces of a tokenizer stand in the text, for tokenizers that do not tell.

Knows letters, accents and the marks tokenizers put on pieces. Refuses to know tokenizers themselves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

MARKS = re.compile(r"^##(?=.)|^Ġ|▁|(?<=.)@@$|(?<=.)</w>$")  # what slow tokenizers write into their tokens
SKIP, SURPRISE = 10, 100  # costs of an alignment: a letter left out, a known token that is not what the text says
REACH, READINGS = 32, 16  # how far ahead a piece is looked for, and how many readings are kept


@cache
def _fold(letter: str) -> str:
    """A letter without case and accents; nothing for white space, accents and control characters themselves."""

    def unseen(part: str) -> bool:
        return part.isspace() or unicodedata.category(part) in ("Mn", "Cc", "Cf")

    kept = "".join(part for part in unicodedata.normalize("NFKD", letter).casefold() if not unseen(part))
    return kept or ("" if unseen(letter) else letter)


@cache
def _stands_alone(letter: str) -> bool:
    """Punctuation and ideographs: a word may end beside them."""
    ideograph = letter.isalpha() and unicodedata.east_asian_width(letter) == "W"
    return ideograph or unicodedata.category(letter).startswith("P") or (letter.isascii() and not letter.isalnum())


def align(text: str, pieces: Sequence[str], unknown: str | None) -> list[tuple[int, int]]:
    """Character offsets of the pieces of a tokenizer that tells none.

    Text and pieces are folded (case, accents, white space and the marks "##", "▁", "Ġ", "@@", "</w>" taken off); the
    pieces, in order, then spell the text. A piece that does not (the unknown token, or one the tokenizer has rewritten)
    covers a gap, and letters may be left out; both as in the cheapest reading of the whole text. A gap costs 1 for each
    seam in it (where a word may end), 1 if it stops at no seam, 2 if it is empty, and SURPRISE if its piece is a known
    token; a letter left out costs SKIP.
    """
    letters = [(index, part) for index, letter in enumerate(text) for part in _fold(letter)]
    folded = "".join(part for _, part in letters)
    origin = [index for index, _ in letters] + [len(text)]
    seam, run_end = [True] * len(origin), [len(folded)] * len(origin)
    for at in range(len(folded) - 1, 0, -1):
        left, right = origin[at - 1], origin[at]
        space = any(map(str.isspace, text[left + 1 : right]))
        seam[at] = space or _stands_alone(text[left]) or _stands_alone(text[right])
        run_end[at - 1] = at if space else run_end[at]
    seams = list(accumulate(seam))

    readings = {0: (0, 0, 0)}  # where a reading stands: its cost, where it stood before, where its last piece starts
    history = []
    for piece in pieces:
        spellings = {"".join(map(_fold, form)) for form in (piece, MARKS.sub("", piece))}
        reached: dict[int, tuple[int, int, int]] = {}
        for at, (cost, *_) in readings.items():
            steps = []  # where the piece starts and stops, and the cost so far
            for spelling in spellings:
                start = folded.find(spelling, at, at + REACH + len(spelling))
                if start >= 0:
                    steps.append((start, start + len(spelling), cost + SKIP * (start - at)))
            if piece == unknown or all(start > at for start, _, _ in steps):
                price = cost + (piece != unknown) * SURPRISE
                steps.append((at, at, price + 2))
                for stop in {*range(at + 1, min(at + REACH, run_end[at])), run_end[at]} - {at}:
                    steps.append((at, stop, price + seams[stop - 1] - seams[at] + (not seam[stop])))
            for start, stop, total in steps:
                if stop not in reached or total < reached[stop][0]:
                    reached[stop] = (total, at, start)
        kept = sorted(reached.items(), key=lambda item: item[1][0])[:READINGS]
        readings = {stop: reading for stop, reading in kept if reading[0] <= kept[0][1][0] + SURPRISE}
        history.append(readings)

    spans = []
    stop = min(readings, key=lambda at: readings[at][0] + SKIP * (len(folded) - at))
    for readings in reversed(history):
        _, before, start = readings[stop]
        end = origin[start] if start == stop else origin[stop - 1] + 1
        while start < stop and end < len(text) and not text[end].isspace() and not _fold(text[end]):
            end += 1  # the accents of its last letter
        spans.append((origin[start], end))
        stop = before
    return spans[::-1]
