"""How a command says where in a text: the one reading of what --position, --free, --keep and OLD=NEW name.

3, -2        a token, by its number: special ones counted, negative from the end
4:7          characters
man          a word or phrase, or a token as the tokenizer writes it
word:2020    a word, whatever it looks like
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from besag.cli import options as o

if TYPE_CHECKING:
    from besag.places.positions import Position

WORD = "word:"  # what follows is a word, though it may look like a number
WAYS = "a word, a token's number (special ones counted, -1 the last), START:END characters, or word:2020"

Positions = Annotated[
    list[str] | None,
    o.of_input("--position", help=f"A place: {WAYS}; all masks if not given. Repeat.", show_default=False),
]
Free = Annotated[
    list[str] | None, o.of_method("--free", help=f"What may change: {WAYS}. A word means all of them. Repeat.")
]
Keep = Annotated[
    list[str] | None, o.of_method("--keep", help=f"What may not change: {WAYS}. A word means all of them. Repeat.")
]


def position(written: str) -> Position:
    """3 is a token, 4:7 are characters, anything else is a word; after "word:" all is."""
    if written.startswith(WORD):
        return written.removeprefix(WORD)
    if re.fullmatch(r"-?[0-9]+", written):
        return int(written)
    span = re.fullmatch(r"([0-9]+):([0-9]+)", written)
    return (int(span[1]), int(span[2])) if span else written


def positions(written: Sequence[str] | None) -> list[Position] | None:
    """All that an option names; None if it was not given."""
    return [position(one) for one in written] if written else None
