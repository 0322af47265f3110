"""Text in columns: display widths, what cannot be seen made visible, aligned cells, lines broken between facts.

Whatever a text holds, nothing that is written here steers the terminal on which it is read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

SPACES = str.maketrans({" ": "␣", "\n": "↵", "\r": "↵", "\t": "⇥"})
BREAKS = str.maketrans({"\n": "↵", "\r": "↵", "\t": "⇥"})
# What terminals act on: control characters of both kinds, but for line ends and tabs; characters that turn the
# direction of writing around; and halves of surrogates, which cannot be written at all. Joiners and marks of ordinary
# text are none of these.
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
STAND_INS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})  # how tokenizers write white space


def display_width(text: str) -> int:
    """How many columns of a terminal the text takes: wide characters two, combining and invisible ones none."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def is_right_to_left(text: str) -> bool | None:
    """The direction of the first letter that has one; None when none has."""
    for c in text:
        direction = unicodedata.bidirectional(c)
        if direction in ("L", "R", "AL"):
            return direction != "L"
    return None


def shown(text: str) -> str:
    r"""The text as it is, but that whatever would steer a terminal is written out, as in \\x1b.

    >>> print(shown("red: \x1b[31m, naïve café 👩\u200d🚀"))
    red: \\x1b[31m, naïve café 👩‍🚀
    """
    return STEERING.sub(lambda found: repr(found[0])[1:-1], text)


def visible(text: str) -> str:
    """White space as marks, other control characters as escapes."""
    return shown(text.translate(SPACES))


def raw(token: str) -> str:
    """A token that covers no text of its own, as its tokenizer writes it: a lone '▁' is shown as '␣'."""
    return visible(token.translate(STAND_INS))


def wrapped(facts: Sequence[str], width: int) -> str:
    """The facts joined by dots, broken between facts where a line would be wider than `width`."""
    lines = [shown(facts[0])]
    for fact in map(shown, facts[1:]):
        if display_width(lines[-1]) + 3 + display_width(fact) <= width:
            lines[-1] += f" · {fact}"
        else:
            lines.append(fact)
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]], left: Iterable[int]) -> str:
    """Columns side by side, numbers to the right, the columns in `left` to the left."""
    left = set(left)
    rows = [[shown(cell.translate(BREAKS)) for cell in row] for row in rows]
    sizes = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            placed(cell, size, column in left) for column, (cell, size) in enumerate(zip(row, sizes, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def placed(text: str, size: int, to_left: bool = False) -> str:
    """A text in a column of `size`."""
    # Isolated, so that a terminal which orders right-to-left text leaves it in its column.
    isolated = f"\u2068{text}\u2069" if is_right_to_left(text) else text
    space = " " * (size - display_width(text))
    return isolated + space if to_left else space + isolated
