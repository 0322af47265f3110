"""The way of a translation, to be read: the sentence after passes 1, 2, 4, 8 …, with what changed since the last.

    1  Two dogs dogs on the the beach .
    2  Two dogs run on the sandy beach .        run and sandy in colour

Knows tokens and how they are shown. Nothing here steers a terminal but its own colours, which `coloured` alone writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from besag.results.grid import BAR, written
from besag.results.tables import shown

COLOUR, PLAIN = "\x1b[1;31m", "\x1b[0m"
MARKED = "[{}]"


class Piece(NamedTuple):
    """A token as a text shows it, with the space before it."""

    text: str
    changed: bool


class Step(NamedTuple):
    passes: int  # made so far
    text: str
    pieces: tuple[Piece, ...]


def doubling(steps: Sequence[Step]) -> list[Step]:
    """The last step of at most 1, 2, 4, 8 … passes each, and the end."""
    found: dict[int, Step] = {}
    limit = 1
    for step in steps:
        while step.passes > limit:
            limit *= 2
        found[limit] = step
    return [*found.values()]


def changed(steps: Sequence[Step]) -> list[Step]:
    """The steps, with what differs from the one before among them marked."""
    found, before = list[Step](), tuple[str, ...]()
    for step in steps:
        now = tuple(piece.text for piece in step.pieces)
        old = before or now
        pieces = tuple(Piece(text, at >= len(old) or old[at].strip() != text.strip()) for at, text in enumerate(now))
        found.append(step._replace(pieces=pieces))
        before = now
    return found


def marked(step: Step) -> str:
    """One line of letters alone: changed tokens stand in brackets."""
    return _line(step, MARKED)


def coloured(steps: Sequence[Step]) -> str:
    """For a terminal that shows colours."""
    return "\n".join(f"{step.passes:>4}  {_line(step, f'{COLOUR}{{}}{PLAIN}')}" for step in steps)


def markup(steps: Sequence[Step]) -> str:
    """For a page."""
    rows = "".join(
        f'<tr><td style="text-align:right">{step.passes}</td><td style="text-align:left" dir="auto">'
        + "".join(
            _space(piece.text) + (f'<span style="background:{BAR}">{written(piece.text.strip())}</span>'
                                  if piece.changed else written(piece.text.strip()))
            for piece in step.pieces
        )
        + "</td></tr>"
        for step in steps
    )  # fmt: skip
    return f"<table><tbody>{rows}</tbody></table>"


def _line(step: Step, mark: str) -> str:
    return "".join(
        _space(piece.text) + (mark.format(shown(piece.text.strip())) if piece.changed else shown(piece.text.strip()))
        for piece in step.pieces
    ).strip()


def _space(text: str) -> str:
    return " " if text[:1].isspace() else ""
