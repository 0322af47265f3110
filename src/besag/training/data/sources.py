"""Where training text comes from: files, globs, standard input, read by `besag.files`; `rows.py` knows fields.

Everything is read on, one document at a time; nothing is held but the document at hand. In a text file an empty line
stands between documents, and each line of a document is a paragraph; a file without empty lines has one document a line
(decided on its first `LOOK_AHEAD` characters and lines, so that a stream needs no second reading). A document of more
than `LONGEST` characters goes on as another, from its next line on. So a file of any size is read in bounded memory,
whatever stands in it. Knows no tokenizer.

Where no held-out text is named, a document is held out if the hash of its text says so: the same documents in every
run, on every machine, whatever stands around them, and two copies of one text always on the same side. Of documents in
groups the hash of the group's name decides, so that it stays whole. Of a small corpus at least one document is held
out, unless all are the same.
"""

from __future__ import annotations

import glob
import hashlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal, cast
from weakref import WeakSet

from besag.errors import BesagError, nearest
from besag.files import lines
from besag.files.lines import Line
from besag.files.rows import NoRows, format_of, read
from besag.training.data.rows import Document as Document
from besag.training.data.rows import from_dataset, from_rows, version, wanted
from besag.training.data.swaps import Swaps, file_of
from besag.training.recipe import Data

LOOK_AHEAD = 1 << 24, 1 << 18  # characters, lines
LONGEST = 1 << 24  # characters of a document
SMALL = 1 << 23  # bytes of files that are read twice without a thought
STDIN = "-"

_spent: WeakSet[IO[bytes]] = WeakSet()  # standard inputs that were read

Which = Literal["train", "valid"]


class NoDocuments(BesagError):
    """There is text where it was looked for, perhaps, but not one document of the wanted side."""


def documents(data: Data, which: Which = "train") -> Iterator[Document]:
    """All documents with any text, in the order of the files named (a glob's files by name)."""
    if which == "valid" and data.valid:
        return _some(_read(data, data.valid, None), data, which)
    if which == "valid" and data.held_out <= 0:
        raise BesagError("there is no held-out text: name files in data.valid, or give data.held_out a share above 0.")
    if which == "valid" and STDIN in data.train:
        raise BesagError(
            "standard input can be read only once, so nothing can be held out of it now: name files in data.valid, or "
            "write data.held_out = 0."
        )
    aside = which == "valid"
    return _some((document for document, kept in split(data) if kept == aside), data, which)


def split(data: Data) -> Iterator[tuple[Document, bool]]:
    """All documents of data.train, and whether each is held out of it."""
    limit = 0.0 if data.valid else data.held_out * 2.0**64
    if limit > 0 and _is_small(data):
        # a share of a few documents may be none of them: then the one with the smallest hash
        hashes = {_lot(document) for document in _read(data, data.train, data.dataset)}
        limit = max(limit, min(hashes) + 1) if len(hashes) > 1 else 0.0
    swap = Swaps.read(data.swap, data.swap_rate) if data.swap is not None else None
    for document in _read(data, data.train, data.dataset):
        aside = limit > 0 and _lot(document) < limit
        yield document if swap is None or aside else swap(document), aside


def texts(data: Data) -> Iterator[str]:
    """What a tokenizer is trained on: the documents, each after its header."""
    for document in documents(data):
        if document.beside is not None and document.beside.header:
            yield document.beside.header
        yield document.text


def _lot(document: Document) -> int:
    """What decides whether a document is held out: its text, or its group, which stays whole."""
    group = None if document.beside is None else document.beside.group
    return hash_of(document.text if group is None else group)


def hash_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _is_small(data: Data) -> bool:
    if STDIN in data.train or data.dataset:
        return False
    return sum(Path(name).stat().st_size for name in files(data.train)) < SMALL


def files(names: Iterable[str]) -> list[str]:
    """The files of these names and globs, in order, each once; a name that fits nothing is an error."""
    found: dict[str, None] = {}
    for name in names:
        if name == STDIN or Path(name).is_file():
            found[name] = None
            continue
        if Path(name).is_dir():
            raise BesagError(f"{name!r} is a folder: write {str(Path(name, '*.txt'))!r} to read the text files in it.")
        matches = sorted(each for each in glob.glob(name, recursive=True) if Path(each).is_file())
        if not matches:
            raise BesagError(f"no file fits {name!r}.{_neighbour(name)}")
        found.update(dict.fromkeys(matches))
    return list(found)


def fingerprint(data: Data, which: Which = "train") -> dict[str, Any]:
    """What the documents are read from, so that a change is seen: files, their sizes and times, the version of a
    dataset, and the rules."""
    names = data.valid if which == "valid" and data.valid else data.train
    stands = []
    for name in files(names):
        stat = None if name == STDIN else Path(name).stat()
        stands.append([name, *((stat.st_size, stat.st_mtime_ns) if stat else (0, 0))])
    return {
        "files": stands,
        "dataset": [data.dataset, data.split, version(data.dataset, data)] if data.dataset else None,
        "field": data.field,
        "spans": data.spans,
        "held_out": [which, data.held_out] if not data.valid else None,
        **({} if data.tags is None else {"tags": data.tags}),
        **({} if data.group is None or data.valid else {"group": data.group}),
        **({"densest": data.densest} if which == "train" and data.densest is not None else {}),
        **(
            {"swap": [_digest(file_of(data.swap)), data.swap_rate]}
            if which == "train" and data.swap is not None
            else {}
        ),
    }


def _read(data: Data, names: Iterable[str], dataset: str | None) -> Iterator[Document]:
    """Every document; where spans or tags are named, each has some or [], and one at least was given them."""
    named = [name for name in ("spans", "tags") if getattr(data, name) is not None]
    missing, seen = {*named}, False
    for document in _every(data, names, dataset):
        lacks: dict[str, Any] = {name: [] for name in named if getattr(document, name) is None}
        missing, seen = missing & lacks.keys(), True
        yield document._replace(**lacks) if lacks else document
    if seen and missing:
        where, name = ", ".join([*names, *filter(None, [dataset])]), min(missing)
        raise BesagError(f"data.{name} = {getattr(data, name)!r}, but nothing in {where} has a field of that name.")


def _every(data: Data, names: Iterable[str], dataset: str | None) -> Iterator[Document]:
    fields = [data.field, *filter(None, (data.spans, data.tags)), *wanted(data)]
    for name in files(names):
        if format_of(name) == "text":
            if wanted(data):
                raise BesagError(f"{_said(name)} is plain text, which has no field {wanted(data)[0]!r}: give a table")
            yield from _texts(_lines(name), name)
            continue
        with suppress(NoRows):  # an empty shard is no reason to stop
            yield from from_rows(read(name, only=fields), data)
    if dataset:
        yield from from_dataset(dataset, data)


def _some(found: Iterable[Document], data: Data, which: Which) -> Iterator[Document]:
    """The documents, or an error when there are none."""
    empty = True
    for document in found:
        empty = False
        yield document
    if empty:
        names = data.valid if which == "valid" and data.valid else data.train
        where = [*map(_said, names), *filter(None, [data.dataset])]
        if not where:
            raise BesagError("no text to train on is named: write files, globs or '-' into data.train.")
        aside = f" for {which}, with {data.held_out:g} of the documents held out" if data.held_out else ""
        raise NoDocuments(f"the corpus is empty: {', '.join(where)} holds no document{'' if data.valid else aside}.")


def _lines(name: str) -> Iterator[Line]:
    """The lines of a file, or of standard input, which is read once."""
    if name != STDIN:
        return lines.lines_of(name)
    stream = sys.stdin.buffer
    if stream in _spent:
        raise BesagError("standard input was read to its end already: what needs it twice must be given a file.")
    _spent.add(stream)
    return cast(Iterator[Line], lines.lines(_said(name), lines.stored(lines.standard_input)))


def _texts(source: Iterator[Line], name: str) -> Iterator[Document]:
    """Documents between empty lines, or line by line where there are none."""
    ahead: list[Line] = []
    seen, gap, parted = 0, False, False
    for number, text in source:
        if text.strip():
            ahead.append((number, text))
            parted = gap  # an empty line between two that are not
            seen += len(text)
        elif seen and not gap:
            ahead.append((number, ""))  # one stands for all that follow it
            gap = True
        if parted or seen > LOOK_AHEAD[0] or len(ahead) > LOOK_AHEAD[1]:
            break

    def all_lines() -> Iterator[Line]:
        yield from ahead
        ahead.clear()
        yield from source

    if not parted:
        for number, text in all_lines():
            if text.strip():
                yield Document(text, None, f"{_said(name)}, line {number}")
        return
    block: list[str] = []
    first, size = 1, 0
    for number, text in all_lines():
        if block and (not text.strip() or size > LONGEST):
            yield Document("\n".join(block), None, f"{_said(name)}, line {first}")
            block, size = [], 0
        if text.strip():
            first = first if block else number
            block.append(text)
            size += len(text) + 1
    if block:
        yield Document("\n".join(block), None, f"{_said(name)}, line {first}")


def _said(name: str) -> str:
    return "standard input" if name == STDIN else name


def _neighbour(name: str) -> str:
    """What may have been meant by a name that nothing fits."""
    folder = Path(name).parent
    if glob.has_magic(str(folder)):
        return ""
    if not folder.is_dir():
        return f" There is no folder {str(folder)!r}."
    if glob.has_magic(Path(name).name):
        return ""  # a pattern is like no name
    return nearest(name, (str(Path(folder, each.name)) for each in folder.iterdir()))
