"""Where the items of a suite come from: a folder, a file, or a data set on the Hugging Face hub. Knows no suite.

besag eval blimp --data FILE              this file
                 --data FOLDER            the files in it; FOLDER/blimp where there is one
                 --data nyu-mll/blimp     of the hub, where no such path exists (pip install 'besag[train]')
                 (none)                   $BESAG_DATA/blimp
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from besag.errors import BesagError, nearest, quoted, require
from besag.files.cells import cell
from besag.files.columns import listed
from besag.files.packed import plain_name
from besag.files.rows import Header, Row, named, read

VARIABLE = "BESAG_DATA"
NOTES = ("SOURCE", "README", "LICENSE", "LICENCE")  # files that say what the others are


class Lies(Protocol):
    """What a suite says of its data."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def files(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def licence(self) -> str: ...
    @property
    def hub(self) -> str: ...


class Table(NamedTuple):
    """A file of rows, or a configuration of a data set on the hub."""

    name: str  # without its ending: "adjunct_island"
    rows: Iterator[Row]


@dataclass(frozen=True)
class Source:
    """The data of one suite."""

    path: Path | None  # a folder or a file; None: of the hub
    hub: str = ""
    wanted: str = ""  # what there should be, for messages

    @property
    def name(self) -> str:
        return self.hub or str(self.path)

    def files(self, *patterns: str) -> list[Path]:
        """The files by glob, packed or not, sorted; a file that was named itself, whatever it is called."""
        if self.path is None:
            raise BesagError(f"{quoted(self.hub)} is of the hub, and this suite reads files: {self.wanted}")
        if self.path.is_file():
            return [self.path]
        found = sorted(
            one for one in self.path.rglob("*")
            if one.is_file() and one.stem not in NOTES
            and any(Path(plain_name(str(one))).match(pattern) for pattern in patterns)
        )  # fmt: skip
        if not found:
            here = listed(sorted(one.name for one in self.path.iterdir())) or "nothing"
            raise BesagError(f"{self.name} has no {' or '.join(patterns)}: it holds {here}. {self.wanted}")
        return found

    def tables(self, *patterns: str, header: Header = named, format: str | None = None) -> Iterator[Table]:
        """Each file by glob (or configuration of the hub's data set) with its rows, their columns by name."""
        if self.path is None:
            yield from _of_hub(self.hub)
            return
        for file in self.files(*patterns):
            yield Table(Path(plain_name(str(file))).stem, read(str(file), format, header=header))

    def texts(self, row: Row, *names: str) -> list[str]:
        """The cells of a row by the names of its columns, as text; one that is missing is refused with those there."""
        if isinstance(row.values, str):
            raise BesagError(f"{row.where} is a text alone, and this suite needs {listed(names)}. {self.wanted}")
        for name in names:
            if name not in row.values:
                guess = nearest(name, row.values)
                raise BesagError(f"{row.where} has no {name!r}; it has {listed(row.values)}.{guess} {self.wanted}")
        return [cell(row.values[name]) for name in names]


def find(lies: Lies, given: str | os.PathLike[str] | None = None) -> Source:
    """The data of a suite, where the user says it is, or else where BESAG_DATA says; what is missing is described."""
    what = needed(lies)
    if given is None:
        root = os.environ.get(VARIABLE)
        if not root:
            raise BesagError(f"no data for {lies.name!r}: say --data, or set {VARIABLE} to a folder of suites. {what}")
        path = Path(root) / lies.folder
        if not path.exists():
            raise BesagError(f"no data for {lies.name!r}: {VARIABLE} is {root!r}, which has no {lies.folder!r}. {what}")
        return Source(path, wanted=what)
    path = Path(given)
    if path.is_dir():
        inner = path / lies.folder
        return Source(inner if inner.exists() else path, wanted=what)
    if path.exists():
        return Source(path, wanted=what)
    name = os.fspath(given)
    if name.count("/") == 1 and not name.startswith((".", "/")) and not Path(name).suffix:
        return Source(None, hub=name, wanted=what)
    raise BesagError(f"there is no {quoted(name)} to read {lies.name!r} from. {what}")


def needed(lies: Lies) -> str:
    """What to put where, from whom, under which licence."""
    hub = f", or --data {lies.hub} (of the hub)" if lies.hub else ""
    return f"It needs {lies.files}, in {VARIABLE}/{lies.folder} or at --data{hub}; from {lies.origin} ({lies.licence})"


def present(lies: Lies) -> bool:
    """Is its data where BESAG_DATA says?"""
    root = os.environ.get(VARIABLE)
    return bool(root) and (Path(str(root)) / lies.folder).exists()


def _of_hub(name: str) -> Iterator[Table]:
    datasets: Any = require("datasets", extra="train")
    try:
        for configuration in datasets.get_dataset_config_names(name):
            for split, rows in datasets.load_dataset(name, configuration).items():
                where = f"{name}, {configuration}, {split}"
                yield Table(
                    configuration,
                    (Row(f"{where}, row {place}", place, values) for place, values in enumerate(rows, 1)),
                )
    except BesagError:
        raise
    except Exception as failure:  # of whichever library stands between us and the hub
        told = (str(failure).strip() or type(failure).__name__).splitlines()[0]
        raise BesagError(f"{quoted(name)} is no path here, and the hub gives nothing of that name: {told}") from failure
