"""What stands in a line: plain text, cells of a TSV or CSV row, a JSON object; and rows of Parquet.

Knows formats; where lines come from, which columns are wanted and what becomes of them is not its affair. A `None`
among the lines (nothing has arrived for a moment) is passed on.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

from besag.errors import BesagError, quoted, require
from besag.files.cells import unescaped
from besag.files.columns import columns, top
from besag.files.lines import Line, lines, opened, stored
from besag.files.packed import plain_name

FORMAT_OF_ENDING = {
    ".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet",
}  # fmt: skip
DEEPEST = 100  # lists and objects within each other in a line of JSON
LONGEST_ROW = 1 << 24  # characters of one CSV row; a quote that is never closed would swallow the file
PARQUET_ROWS = 1024

Cells: TypeAlias = tuple[int, list[str]]
Header: TypeAlias = Callable[
    [list[str]], tuple[Sequence[str], bool]
]  # first row → names of columns, and are they in it?


class NoRows(BesagError):
    """A table that names its columns, and holds nothing else."""


class Row(NamedTuple):
    where: str  # "corpus.tsv, line 3", for messages
    place: int  # which line or row of its file, counted from 1
    values: Mapping[str, object] | str  # by column; a text alone where there are no columns


def format_of(path: str, usual: str = "text") -> str:
    """By the ending, looked at as if the file were not packed."""
    return FORMAT_OF_ENDING.get(Path(plain_name(path)).suffix.lower(), usual)


def named(cells: list[str]) -> tuple[list[str], bool]:
    """The first row names the columns; the second of two equal names gets a number."""
    earlier = [cells[:place].count(name) for place, name in enumerate(cells)]
    return [f"{name}.{count + 1}" if count else name for name, count in zip(cells, earlier, strict=True)], True


def numbered(cells: list[str]) -> tuple[list[str], bool]:
    """No row names them: they are called 1, 2 …"""
    return [str(place + 1) for place in range(len(cells))], False


def read(
    path: str,
    format: str | None = None,
    *,
    header: Header = named,
    escaped: bool = False,
    only: Sequence[str] | None = None,
    lenient: bool = False,
) -> Iterator[Row]:
    """The rows of a file, its format by its ending if not given; of Parquet only the columns named in `only`.

    `lenient`: what is not UTF-8 is kept, see `characters.py`.
    """
    format = format or format_of(path)
    if format == "parquet":
        return parquet_rows(path, only, lenient)
    found = lines(path, stored(partial(opened, path)), keep_returns=format == "csv", lenient=lenient)
    return cast(Iterator[Row], rows(found, format, path, header=header, escaped=escaped))


def rows(
    found: Iterator[Line | None], format: str, name: str, *, header: Header = named, escaped: bool = False
) -> Iterator[Row | None]:
    try:
        if format == "text":
            for line in found:
                yield None if line is None else Row(f"{name}, line {line[0]}", *line)
        elif format == "jsonl":
            yield from _json_rows(found, name)
        else:
            cells = _tsv_cells(found, escaped) if format == "tsv" else csv_cells(found, name)
            yield from _delimited_rows(cells, header, name)
    finally:
        if isinstance(found, Generator):
            found.close()  # and with it the file, also where a row was rejected


def parquet_rows(
    path: str, only: Sequence[str] | None = None, lenient: bool = False, within: range | None = None, file: Any = None
) -> Iterator[Row]:
    """All rows, or those `within`, counted from 0; from an open `file` where the path is one that only others open."""
    pyarrow, parquet = require("pyarrow", extra="parquet"), require("pyarrow.parquet", extra="parquet")
    if file is None:
        opened(path).close()  # which knows what to say of a file that is not there
    number = 0
    try:
        with parquet.ParquetFile(file or path) as file:
            _refuse_long_rows(file.metadata, path)
            names = file.schema_arrow.names
            fields = None if only is None else [str(top(names, one)) for one in columns(names, only, path)]
            groups, number = _groups(file.metadata, within)
            for batch in file.iter_batches(PARQUET_ROWS, row_groups=groups, columns=fields):
                for values in _values(batch, lenient):
                    number += 1
                    if within is None or number - 1 in within:
                        yield Row(f"{path}, row {number}", number, values)
    except UnicodeDecodeError as failure:
        found = f"0x{failure.object[failure.start]:02x}"
        raise BesagError(f"{path}, row {number + 1} holds a text that is not UTF-8: byte {found}") from failure
    except (pyarrow.ArrowException, OSError) as failure:
        why = (str(failure).strip() or type(failure).__name__).splitlines()[0]
        raise BesagError(f"{path} cannot be read, it is damaged or not a Parquet file: {why}") from failure
    if not number:
        raise NoRows(f"{path} has columns but no rows")


def _groups(about: Any, within: range | None) -> tuple[list[int], int]:
    """The row groups that hold these rows, and how many rows stand before them."""
    ends = list(accumulate(about.row_group(place).num_rows for place in range(about.num_row_groups)))
    found = [
        place
        for place, end in enumerate(ends)
        if within is None or (end > within.start and end - about.row_group(place).num_rows < within.stop)
    ]
    return found, ends[found[0] - 1] if found and found[0] else 0


def _refuse_long_rows(about: Any, path: str) -> None:
    """A file of a few kilobytes can unpack to gigabytes, which Parquet reads a page at a time; its own words tell."""
    for place in range(about.num_row_groups):
        group = about.row_group(place)
        if group.total_byte_size > LONGEST_ROW * max(1, group.num_rows):
            raise BesagError(f"{path} has rows of more than {LONGEST_ROW >> 20} MiB: is this text?")


def _values(batch: Any, lenient: bool) -> Iterator[dict[str, Any]]:
    """The rows of a batch; one by one where a text in it is not UTF-8, so that the others are there."""
    try:
        yield from batch.to_pylist()
        return
    except UnicodeDecodeError:
        pass
    decode = "surrogateescape" if lenient else "strict"
    for row in range(batch.num_rows):
        cells = zip(batch.schema.names, batch.columns, strict=True)
        yield {name: _plain(column[row], decode) for name, column in cells}


def _plain(scalar: Any, decode: str) -> Any:
    """A value of Arrow as one of Python, its texts decoded in this way."""
    if not scalar.is_valid:
        return None
    kind = type(scalar).__name__
    if kind == "DictionaryScalar":
        return _plain(scalar.value, decode)
    if kind == "StructScalar":
        return {name: _plain(one, decode) for name, one in scalar.items()}
    if kind in ("ListScalar", "LargeListScalar", "FixedSizeListScalar"):
        return [_plain(one, decode) for one in scalar.values]
    return scalar.as_buffer().to_pybytes().decode("utf-8", decode) if "String" in kind else scalar.as_py()


def _json_rows(found: Iterator[Line | None], name: str) -> Iterator[Row | None]:
    for line in found:
        if line is None:
            yield None
            continue
        number, text = line
        if not text.strip():
            continue  # JSON Lines allows empty lines; they are no rows
        where = f"{name}, line {number}"
        value = parsed(text, where)
        if not isinstance(value, dict | str):
            raise BesagError(f"{where} is JSON, but neither an object nor a string: {quoted(text[:40])}")
        yield Row(where, number, value)


def parsed(text: str, where: str) -> Any:
    """One line of JSON."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as failure:
        array = " (an array? jq -c '.[]' makes one object a line of it)" if text.lstrip().startswith("[") else ""
        said = f"{failure.msg}, at character {failure.pos + 1}"
        raise BesagError(f"{where} is not JSON{array}: {said}. Each line must be one object") from failure
    except RecursionError:
        raise BesagError(f"{where} is nested more than {DEEPEST} deep") from None
    except ValueError:  # of Python's own
        raise BesagError(f"{where} has a number of more digits than can be read") from None
    if text.count("[") + text.count("{") > DEEPEST and _depth(value) > DEEPEST:
        raise BesagError(f"{where} is nested more than {DEEPEST} deep")
    return value


def _depth(value: object) -> int:
    """How many lists and objects stand within each other; without recursion, which has an end of its own."""
    level, depth = [value], 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth += 1
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return depth


def _delimited_rows(table: Iterator[Cells | None], header: Header, name: str) -> Iterator[Row | None]:
    names: Sequence[str] = ()
    any_row = False
    for cells in table:
        if cells is None:
            yield None
            continue
        number, values = cells
        if len(values) == 1 and not values[0].strip() and len(names) != 1 and (names or header is not numbered):
            continue  # an empty line in a table of several columns is no row, and no header either
        if not names:
            names, in_it = header(values)
            if in_it:
                continue
        if len(values) != len(names):
            raise BesagError(f"{name}, line {number} has {len(values)} cells, but the table has {len(names)} columns")
        any_row = True
        yield Row(f"{name}, line {number}", number, dict(zip(names, values, strict=True)))
    if names and not any_row:
        raise NoRows(f"{name} has a header but no rows")


def _tsv_cells(found: Iterator[Line | None], escaped: bool) -> Iterator[Cells | None]:
    """Cells between tabs; quotes are ordinary characters, as in the corpora that come as TSV."""
    for line in found:
        if line is None:
            yield None
            continue
        cells = line[1].split("\t")
        yield line[0], [unescaped(cell) for cell in cells] if escaped else cells


def csv_cells(found: Iterator[Line | None], name: str) -> Iterator[Cells | None]:
    """Cells between commas, quoted where need be; a quoted cell may run over several lines."""
    csv.field_size_limit(LONGEST_ROW)
    begun, pending = 0, ""  # where an unfinished row began, and what is there of it
    for line in found:
        if line is None:
            yield None
            continue
        number, text = line
        if begun:
            pending = f"{pending}\n{text}"
            if '"' not in text and len(pending) < LONGEST_ROW:
                continue  # this line cannot close the quote
        else:
            begun, pending = number, text
        try:
            cells = next(csv.reader([pending], strict=True)) or [""]
        except csv.Error as failure:
            if "end of data" in str(failure) and len(pending) < LONGEST_ROW:
                continue
            raise BesagError(f"{name}, line {begun} is not CSV: {failure}") from failure
        yield begun, cells
        begun = 0
    if begun:
        raise BesagError(f"{name}, line {begun} opens a quote that is never closed")
