"""A table as data, and how it is written: aligned for a terminal, as HTML for a notebook.

Bars are translucent and letters keep the page's own colour, so that light and dark pages both work. Every text is
escaped. Knows neither numbers nor results: cells are words.
"""

from __future__ import annotations

import html as markup
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from besag.results.tables import aligned, display_width, shown

BAR = "rgba(226,72,38,.35)"


class Line(NamedTuple):
    cells: Sequence[str]
    hint: str = ""  # what hovering over it shows
    share: float | None = None  # of the bar of this line, 0 to 1
    strong: bool = False  # is it the one the reader looks for?
    more: str = ""  # what a terminal shows instead of the last cell, where all lines have room for theirs


@dataclass(frozen=True)
class Grid:
    """Lines under a head; columns in `left` are words, the others numbers."""

    head: Sequence[str]  # empty: no head
    lines: Sequence[Line]
    left: Collection[int] = ()
    bar: int | None = None  # the column in which bars are drawn
    note: str = ""  # a line below

    def __bool__(self) -> bool:
        return bool(self.lines)

    def text(self, width: int) -> str:
        """Aligned columns."""
        return f"{self._aligned(width)}\n{shown(self.note)}" if self.note else self._aligned(width)

    def _aligned(self, width: int) -> str:
        head = [self.head] if any(self.head) else []
        plain = aligned([*head, *(line.cells for line in self.lines)], self.left)
        if not any(line.more for line in self.lines):
            return plain
        long = aligned([*head, *([*line.cells[:-1], line.more] for line in self.lines)], self.left)
        return long if max(map(display_width, long.splitlines())) <= width else plain

    def html(self) -> str:
        names = "".join(f"<th{self._style(at)}>{written(name)}</th>" for at, name in enumerate(self.head))
        head = f"<thead><tr>{names}</tr></thead>" if any(self.head) else ""
        note = f"<div>{written(self.note)}</div>" if self.note else ""
        return f"<table>{head}<tbody>{''.join(map(self._row, self.lines))}</tbody></table>{note}"

    def _row(self, line: Line) -> str:
        weight = ' style="font-weight:bold"' if line.strong else ""
        hint = f' title="{written(line.hint)}"' if line.hint else ""
        cells = "".join(
            f'<td{self._style(at, line.share)} dir="auto">{written(cell)}</td>' if at in self.left
            else f"<td{self._style(at, line.share)}>{written(cell)}</td>"
            for at, cell in enumerate(line.cells)
        )  # fmt: skip
        return f"<tr{weight}{hint}>{cells}</tr>"

    def _style(self, at: int, share: float | None = None) -> str:
        if at == self.bar and share is not None:
            size = f"{100 * share:.1f}%"
            fill = f"background:linear-gradient(to right,{BAR} {size},transparent {size})"
            return f' style="min-width:8em;text-align:left;{fill}"'
        return f' style="text-align:{"left" if at in self.left or at == self.bar else "right"}"'


def written(text: str) -> str:
    """A text as a page writes it: neither markup nor anything that steers."""
    return markup.escape(shown(text))


def lines(rows: Sequence[Sequence[str]]) -> list[Line]:
    """Plain lines, of cells alone."""
    return [Line(row) for row in rows]


def heading(title: Sequence[str]) -> str:
    """What a page is about."""
    return f'<div dir="auto">{escaped(title)}</div>' if title else ""


def footer(facts: Sequence[str], before: str = "") -> str:
    """The facts below a page; `before` is markup that stands in front of them."""
    return f'<div style="opacity:.75;font-size:85%">{before}{escaped(facts)}</div>'


def page(title: Sequence[str], grids: Sequence[Grid], facts: Sequence[str]) -> str:
    return heading(title) + "".join(grid.html() for grid in grids if grid) + footer(facts)


def escaped(facts: Sequence[str]) -> str:
    return written(" · ".join(facts))
