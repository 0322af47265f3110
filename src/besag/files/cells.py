"""A row as one line, and back: what is escaped, quoted, rounded or left empty. Knows values, and no files.

In a TSV that besag writes, a backslash begins `\\\\`, `\\t`, `\\n` or `\\r`: a line is a row, and a tab a border. What
no encoding can write is written as `characters.py` shows it, in every format.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence

from besag.characters import all_shown, is_text, shown

ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_MEANT = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
_ESCAPE = re.compile(r"\\[\\tnr]")
_RUN = re.compile("['\"]*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # what spreadsheets begin a formula with
_NUMBER = re.compile(r"[+-]?(inf|\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)", re.ASCII)


def escaped(text: str) -> str:
    return text.translate(ESCAPES)


def unescaped(cell: str) -> str:
    return _ESCAPE.sub(lambda found: _MEANT[found[0]], cell) if "\\" in cell else cell


def harmless(text: str) -> str:
    """The text as a spreadsheet shows it and does not run it: with an apostrophe before what it takes for a formula.

    Quotes before a formula are of no help, and get one too; so whatever was changed, and nothing else, begins with an
    apostrophe and then what a formula begins with, and without the first apostrophe it is what it was. Numbers stay.

    >>> harmless("=1+1"), harmless("-1.5"), harmless("a=b")
    ("'=1+1", '-1.5', 'a=b')
    """
    return f"'{text}" if _RUN.match(text) and not _NUMBER.fullmatch(text) else text


def tsv_line(cells: Sequence[str]) -> str:
    return "\t".join(map(escaped, cells)) + "\n"


def csv_line(cells: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)  # only characters of the line end are quoted, and a lone CR must be, too
    return buffer.getvalue().removesuffix("\r\n") + "\n"


def json_line(row: object) -> str:
    from besag.results.data import json_ready  # it brings NumPy, which nobody who asks for --help must wait for

    line = json.dumps(json_ready(row), ensure_ascii=False, allow_nan=False, default=str) + "\n"
    return line if is_text(line) else json_line(all_shown(json_ready(row)))


def cell(value: object) -> str:
    """A value as it came; nothing where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    whole = isinstance(value, dict | list | bool)
    return shown(json.dumps(value, ensure_ascii=False, default=str) if whole else str(value))


def rounded(value: object) -> object:
    """A number that was computed, to 8 digits."""
    return f"{value:.8g}" if isinstance(value, float) and not math.isnan(value) else value
