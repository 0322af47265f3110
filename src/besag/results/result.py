"""What every result answers: can I use it, what must I know, how do I get it out of here.

`Result` is the promise, for readers and for tests. `Presented` keeps most of it for a class that has a status, facts
and grids: it writes the table of a terminal and the page of a notebook. Knows no kind of result.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from besag.checks import checked
from besag.results.grid import Grid, page
from besag.results.status import Status
from besag.results.tables import wrapped

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


@runtime_checkable
class Result(Protocol):
    """Where a picture makes sense there is also `plot`, and where a number belongs to the work done, `details`."""

    @property
    def status(self) -> Status:
        """Whether it can be used, or why not."""

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the numbers, most important first."""

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON, with its `status` and `facts`."""

    def to_pandas(self) -> DataFrame:
        """Its rows; `frame.attrs` says what they are."""

    def _repr_html_(self) -> str:
        """What a notebook shows."""


class OfRows(Generic[T]):
    """A result that is a sequence: of its rows."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def rows(self) -> tuple[T, ...]: ...

    def __len__(self) -> int:
        return len(self.rows)

    @checked
    def __getitem__(self, index: int) -> T:
        return self.rows[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.rows)


class Presented:
    """Writes a result: what it is about, its grids, its facts."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def status(self) -> Status: ...
        @property
        def facts(self) -> list[str]: ...
        def _grids(self) -> Sequence[Grid]:
            """What is shown of the numbers."""

    def _title(self) -> Sequence[str]:
        """What the grids are about; nothing where they say so themselves."""
        return ()

    def __repr__(self) -> str:
        return self._text(shutil.get_terminal_size().columns)

    def _text(self, width: int) -> str:
        above = [wrapped(self._title(), width)] if self._title() else []
        return "\n\n".join([*above, *(grid.text(width) for grid in self._grids() if grid), wrapped(self.facts, width)])

    def _repr_html_(self) -> str:
        return page(self._title(), self._grids(), self.facts)

    def _answers(self) -> dict[str, Any]:
        """What the dictionary of every result begins with."""
        return {"status": self.status, "facts": self.facts}
