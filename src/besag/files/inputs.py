"""From a command's INPUTs to numbered records, one at a time and in constant memory.

Knows which argument is what: a text, a file or stdin; `rows.py` knows what stands in them. A `None` among the records
means that nothing has arrived for a moment: whoever waits may flush. A text may be one that no encoding can write
(`characters.py`): its row is there, and gets a status.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from besag.errors import BesagError, quoted
from besag.files import lines, regions
from besag.files.columns import columns, context, listed, text, usual, value
from besag.files.packed import OPENERS
from besag.files.regions import Regions
from besag.files.rows import FORMAT_OF_ENDING, NoRows, Row, format_of, named, numbered, parquet_rows, rows

USUAL_COLUMNS, IN_REGIONS = ("text", "sentence"), "regions"
_ENDINGS = (".txt", ".md", *FORMAT_OF_ENDING, *OPENERS)
_LANGUAGE = re.compile(r"[\w.-]+\.[a-z]{2}")  # test.de, train.en: one side of parallel text


class Layout(NamedTuple):
    """How tables are read."""

    format: str | None = None  # None: by the file's ending
    column: str | None = None  # where the texts are, see columns.py; None: the one that is called text or sentence
    header: bool = True  # does the first row of a TSV or CSV name the columns?
    keep: bool = True  # are the other columns wanted?
    escaped: bool = False  # does \t in a cell of a TSV mean a tab? (in those that besag writes)
    prefix: str | None = None  # the column with the context before each text; None: there is none
    suffix: str | None = None  # and with that after it
    sources: str | None = None  # and with what each text is given
    sign: str | None = None  # at which texts are cut into regions; None: they are not
    spans: str | None = None  # the column with spans of characters of each text


class Part(NamedTuple):
    """Some rows of a file: of lines what stands there, of Parquet which rows."""

    content: bytes = b""
    after: int = 0  # lines before it
    head: bytes = b""  # the line that names the columns, of those formats that have one
    rows: range = range(0)
    file: Any = None  # where the path is one that only others open


WHOLE = Part()


class Record(NamedTuple):
    number: int  # counted from 1 over all inputs, before `skip`
    where: str  # "corpus.txt, line 3", for messages
    text: str  # perhaps with halves of surrogate pairs, see `characters.py`
    others: Mapping[str, object]  # the other columns of its row
    prefix: str | None = ""  # None: its row has none, where there should be one
    suffix: str | None = ""
    sources: str | None = ""
    regions: Regions | None = None  # where they are asked for


class _Found(NamedTuple):
    """A record that is not yet numbered."""

    where: str
    text: str
    others: Mapping[str, object]
    prefix: str | None
    suffix: str | None
    sources: str | None
    regions: Regions | None


@dataclass(frozen=True)
class Input:
    """One argument: a text, a file or stdin. `texts` opens it anew each time (stdin but once)."""

    kind: str  # "text" | "file" | "stdin" | "part"
    value: str
    layout: Layout
    part: Part = WHOLE

    @property
    def name(self) -> str:
        shortened = self.value if len(self.value) <= 60 else f"{self.value[:59]}…"
        names = {"text": f"the text {shortened!r}", "file": self.value, "part": self.value, "stdin": "stdin"}
        return names[self.kind]

    @property
    def regular(self) -> bool:
        """Can it be looked into without using it up?"""
        return self.kind == "file" and stat.S_ISREG(os.stat(self.value).st_mode)

    def is_file(self, path: str) -> bool:
        return self.kind == "file" and os.path.exists(path) and os.path.samefile(self.value, path)

    def fingerprint(self) -> dict[str, Any] | None:
        """What it holds, so that a change is seen; None where it cannot be read a second time."""
        if self.kind == "text":
            return {"text": self.value}
        if not self.regular:
            return None
        with open(self.value, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"file": os.path.basename(self.value), "bytes": os.stat(self.value).st_size, "sha256": digest}

    def texts(self) -> Generator[_Found | None, None, None]:
        """Every row, and None where nothing has arrived for a moment."""
        column, around = None, list[str | None]()
        with closing(self._rows()) as found:
            for row in found:
                if row is None:
                    yield None
                    continue
                if isinstance(row.values, str):
                    before, after, given = self._no_contexts()
                    whole, parts = self._in_regions(row.values, row)
                    yield _Found(row.where, whole, {}, before, after, given, parts)
                    continue
                if column is None:
                    column = self._column(list(row.values))
                    around = [self._named(list(row.values), *one) for one in self._around]
                    spans = self._named(list(row.values), "--spans-column", self.layout.spans)
                rest = row.values.items() if self.layout.keep else ()
                others = {name: value for name, value in rest if name != column}
                before, after, given = ("" if one is None else context(row.values, one, row.where) for one in around)
                whole, parts = self._in_regions(value(row.values, column, row.where), row, column, spans)
                yield _Found(row.where, whole, others, before, after, given, parts)

    def _in_regions(
        self, said: Any, row: Row, column: str = "", spans: str | None = None
    ) -> tuple[str, Regions | None]:
        """The text to be scored, and its regions, where they are asked for."""
        if self.layout.sign is not None and isinstance(said, list | Mapping):
            return regions.listed(said, row.where)
        whole = said if isinstance(row.values, str) else text(row.values, column, row.where, lenient=True)
        if self.layout.sign is not None:
            return regions.cut(whole, self.layout.sign)
        if self.layout.spans is None:
            return whole, None
        if spans is None:
            raise BesagError(f"--spans-column {self.layout.spans!r}: {self.name} has no columns")
        assert not isinstance(row.values, str)
        return whole, regions.spans(value(row.values, spans, row.where), whole, row.where)

    @property
    def _around(self) -> list[tuple[str, str | None]]:
        """The columns of what goes with a text, and how a user says which."""
        layout = self.layout
        return [
            ("--prefix-column", layout.prefix),
            ("--suffix-column", layout.suffix),
            ("--source-column", layout.sources),
        ]

    def _no_contexts(self) -> list[str | None]:
        """Of a row without columns: wrong where no row has any, and lacking where others do."""
        for option, wanted in self._around:
            if wanted is not None and (self.kind == "text" or self._format != "jsonl"):
                raise BesagError(f"{option} {wanted!r}: {self.name} has no columns")
        return ["" if wanted is None else None for _, wanted in self._around]

    def _named(self, names: Sequence[str], option: str, wanted: str | None) -> str | None:
        """The column that an option names, as it is called there. A first JSON object may lack what others have."""
        if wanted is None or (self._format == "jsonl" and not wanted.isdecimal()):
            return wanted
        return columns(names, [wanted], self.name, f"{option} {{}} is no column")[0]

    @property
    def _format(self) -> str:
        return self.layout.format or format_of(self.value)

    def _rows(self) -> Generator[Row | None, None, None]:
        if self.kind == "text":
            yield Row(self.name, 1, self.value)
            return
        format = self._format
        try:
            if format == "parquet":
                if not (self.regular or self.kind == "part"):
                    raise BesagError(f"{self.name}: Parquet is read from a file, not from a pipe")
                layout = self.layout
                wanted = [layout.column, layout.prefix, layout.suffix, layout.sources, layout.spans]
                only = None if self.layout.keep or wanted[0] is None else [one for one in wanted if one is not None]
                within, file = (self.part.rows, self.part.file) if self.kind == "part" else (None, None)
                yield from parquet_rows(self.value, only, lenient=True, within=within, file=file)
                return
            header = named if self.layout.header else numbered
            read = partial(lines.lines, self.name, keep_returns=format == "csv", lenient=True)
            head = read(iter([self.part.head])) if self.part.head else iter(())
            with closing(read(self._chunks(), after=self.part.after)) as body:
                found = chain(head, body)
                yield from rows(found, format, self.name, header=header, escaped=self.layout.escaped)
        except NoRows as nothing:
            hint = " (or say --no-header)" if "header" in str(nothing) else ""
            raise BesagError(f"{nothing}, not one text{hint}") from None

    @property
    def _headed(self) -> bool:
        """Is the first line taken for the names of columns?"""
        return self.layout.header and (self.layout.format or format_of(self.value)) in ("tsv", "csv")

    def _column(self, names: Sequence[str]) -> str:
        """The column that holds the texts."""
        known = (*USUAL_COLUMNS, IN_REGIONS) if self.layout.sign is not None else USUAL_COLUMNS
        wanted = self.layout.column or usual(names, known)
        if self.layout.column is None and wanted not in known and self._headed and len(names) == 1:
            raise BesagError(
                f"{self.name} begins with {quoted(names[0])}: say --column 1 if that is the name of its column, and "
                "--no-header if it is a text"
            )
        if wanted is None:
            has = f"{self.name} has the columns {listed(names)}"
            raise BesagError(f"which column holds the texts? Say --column NAME (or a number): {has}")
        return columns(names, [wanted], self.name)[0]

    def _chunks(self) -> Iterator[bytes | None]:
        if self.kind == "part":
            return iter([self.part.content])
        if self.kind == "stdin":
            return lines.arriving(lines.standard_input)
        opened = partial(lines.opened, self.value)
        return lines.stored(opened) if self.regular else lines.arriving(opened)


def inputs(arguments: Sequence[str], *, as_text: bool, layout: Layout) -> list[Input]:
    """Say what each argument is, and look into every regular file, so that a wrong one is known before any work."""
    found = [_classify(argument, as_text, layout) for argument in arguments]
    if sum(source.kind == "stdin" for source in found) > 1:
        raise BesagError("'-' (stdin) can be read only once")
    for source in found:
        if source.regular and all(False for _ in islice(source.texts(), 1)):
            raise BesagError(f"{source.name} is empty: there is no text in it")
    return found


def file_input(path: str, layout: Layout) -> list[Input]:
    """A file (or stdin) that must be one."""
    if path != "-" and not os.path.exists(path):
        raise BesagError(f"no such file: {quoted(path)}")
    return inputs([path], as_text=False, layout=layout)


def records(
    sources: Sequence[Input], *, skip: int = 0, limit: int | None = None, done: int = 0
) -> Iterator[Record | None]:
    """All rows of all inputs, numbered; `skip` of them passed over, then at most `limit`, without the first `done`."""
    number, last = 0, None if limit is None else skip + limit
    for source in sources:
        before = number
        with closing(source.texts()) as found:
            for row in found:
                if row is None:
                    yield None
                    continue
                number += 1
                if number > skip + done:
                    yield Record(number, *row)
                if number == last:
                    return
        if number == before:
            raise BesagError(f"nothing came in on {source.name}, not one text")
    if number <= skip:
        raise BesagError(f"--skip {skip} passes over all {number} rows: there is nothing left to score")


def _classify(argument: str, as_text: bool, layout: Layout) -> Input:
    if as_text:
        return Input("text", argument, layout)
    if argument == "-":
        return Input("stdin", argument, layout)
    if os.path.isdir(argument):
        raise BesagError(f"{argument!r} is a folder; give the files in it (or --text to score the word itself)")
    if os.path.exists(argument):
        return Input("file", argument, layout)
    ending = argument.lower().endswith(_ENDINGS) or _LANGUAGE.fullmatch(argument) is not None
    path_like = "/" in argument or os.sep in argument or ending
    if path_like and not any(symbol.isspace() for symbol in argument):
        raise BesagError(f"no such file: {quoted(argument)} (if it is the text itself, say --text)")
    return Input("text", argument, layout)
