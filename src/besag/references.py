"""What to cite: the entries of references.bib, by their keys, and besag itself. Knows nothing of the methods."""

from __future__ import annotations

import re
from pathlib import Path

BESAG = "besag"
ENTRY = re.compile(r"@\w+\{([^,]+),\n.*?\n\}", re.DOTALL)

_FILE = Path(__file__).with_name("references.bib")
BIBTEX: dict[str, str] = {entry[1]: entry[0] for entry in ENTRY.finditer(_FILE.read_text("utf-8"))}
