"""A row as one line, and back: what is escaped, quoted, rounded or left empty. Knows values, and no files.

In a TSV that besag writes, a backslash begins `\\\\`, `\\t`, `\\n` or `\\r`: a line is a row, and a tab a border.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence

ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_MEANT = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r"}
_ESCAPE = re.compile(r"\\[\\tnr]")


def escaped(text: str) -> str:
    return text.translate(ESCAPES)


def unescaped(cell: str) -> str:
    return _ESCAPE.sub(lambda found: _MEANT[found[0]], cell) if "\\" in cell else cell


def tsv_line(cells: Sequence[str]) -> str:
    return "\t".join(map(escaped, cells)) + "\n"


def csv_line(cells: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)  # only characters of the line end are quoted, and a lone CR must be, too
    return buffer.getvalue().removesuffix("\r\n") + "\n"


def json_line(row: object) -> str:
    from besag.results.data import json_ready  # it brings NumPy, which nobody who asks for --help must wait for

    return json.dumps(json_ready(row), ensure_ascii=False, allow_nan=False, default=str) + "\n"


def cell(value: object) -> str:
    """A value as it came; nothing where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list | bool) else str(value)


def rounded(value: object) -> object:
    """A number that was computed, to 8 digits."""
    return f"{value:.8g}" if isinstance(value, float) and not math.isnan(value) else value
