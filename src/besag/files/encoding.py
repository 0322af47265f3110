"""A row as a line: of TSV, CSV or JSON Lines; and the columns of a table whose rows may differ. Knows no file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from besag.characters import all_shown
from besag.files.cells import cell, harmless, json_line, rounded

Row: TypeAlias = Mapping[str, object]  # what besag found
Others: TypeAlias = Mapping[str, object]  # the other columns of the input's row


class Encoder(Protocol):
    columns: Columns

    def __call__(self, row: Row, others: Others) -> str: ...


class Columns:
    """The columns of a table whose rows may differ: those of the first row."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.left_out: set[str] = set()

    def arrange(self, row: Row, others: Others) -> dict[str, object]:
        """One row with exactly these columns; an input's column named like one of ours is called input.NAME."""
        flat = {**row, **{f"input.{name}" if name in row else name: value for name, value in others.items()}}
        flat = all_shown(flat)
        if not self.names:
            self.names = list(flat)
        for name in flat.keys() - set(self.names) - self.left_out:
            self.left_out.add(name)
            print(
                f"warning: the column {name!r} is left out, for the first row has none; JSON Lines would keep it",
                file=sys.stderr,
            )
        return {name: flat.get(name) for name in self.names}


class Delimited:
    """A header, then a line a row. What besag computed is rounded to 8 digits; what came in goes out as it was, or
    (`safe`) so that no spreadsheet runs it.
    """

    def __init__(self, line: Callable[[list[str]], str], safe: bool = False) -> None:
        self.line, self.columns, self.safe = line, Columns(), safe

    def __call__(self, row: Row, others: Others) -> str:
        first = not self.columns.names
        flat = self.columns.arrange({name: rounded(value) for name, value in row.items()}, others)
        header = self.header() if first else ""
        return header + self._line([cell(value) for value in flat.values()])

    def header(self) -> str:
        return self._line(self.columns.names)

    def _line(self, cells: list[str]) -> str:
        return self.line([harmless(one) for one in cells] if self.safe else cells)


class JsonLines:
    """An object a line; the input's other columns stand in a field of their own."""

    def __init__(self) -> None:
        self.columns = Columns()  # none: every row has its own

    def __call__(self, row: Row, others: Others) -> str:
        return json_line({**row, "input": others} if others else row)
