"""The options that say which parts of a text are meant: regions or spans. `files/regions.py` reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from besag.cli import options as o
from besag.cli.exits import say
from besag.errors import BesagError, quoted
from besag.files.inputs import Record

SIGN = "|"  # if not given
_APART = re.compile(rf"\S\s+{re.escape(SIGN)}\s+\S")


@dataclass(frozen=True)
class RegionOptions:
    """Which parts of each text are meant."""

    region_sign: o.RegionSign = None
    spans_column: o.SpansColumn = None

    def of(self, per: str) -> RegionOptions:
        """What goes with rows of this kind; what does not is refused."""
        if self.region_sign is not None and self.spans_column is not None:
            raise BesagError("--region-sign cuts the text into regions, and --spans-column names others: say which")
        if self.region_sign == "" or (self.region_sign or SIGN).isspace():
            raise BesagError(f"--region-sign {self.region_sign!r} is no sign: white space stands between words, too")
        if per in ("sentence", "token") and (self.region_sign or self.spans_column):
            option = "--region-sign" if self.region_sign else "--spans-column"
            raise BesagError(f"{option} goes with --per region, character-span or word, and not with --per {per}")
        if per == "character-span" and self.spans_column is None:
            raise BesagError("--per character-span: say in which column the spans stand, with --spans-column")
        if per == "region" and self.spans_column is not None:
            raise BesagError("--spans-column goes with --per character-span; regions are cut at a sign, or listed")
        return replace(self, region_sign=SIGN) if per == "region" and self.region_sign is None else self

    def noticed(self, found: Iterable[Record | None]) -> Iterator[Record | None]:
        """Pass records on, and warn once of a text that looks cut into regions where no region is asked for."""
        told = self.region_sign is not None or self.spans_column is not None
        for record in found:
            if not told and record is not None and _APART.search(record.text):
                told = True
                say(
                    f"warning: {record.where}: '{SIGN}' between words of {quoted(record.text)} is scored as a token. "
                    f"If it separates regions, pass --per region, or --per word --region-sign '{SIGN}'"
                )
            yield record
