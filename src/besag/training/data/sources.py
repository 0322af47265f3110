"""Where training text comes from: files, globs, standard input, JSON lines, Parquet, names of `datasets`.

Everything is read on, one document at a time; nothing is held but the document at hand. In a text file an empty line
stands between documents, and each line of a document is a paragraph; a file without empty lines has one document a line
(decided on its first `LOOK_AHEAD` bytes, so that a stream needs no second reading). Knows no tokenizer.

Where no held-out text is named, a document is held out if the hash of its text says so: the same documents in every
run, on every machine, whatever stands around them, and two copies of one text always on the same side. Of a small
corpus at least one document is held out, unless all are the same.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import hashlib
import json
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple
from weakref import WeakSet

from besag.errors import BesagError, nearest, require
from besag.training.recipe import Data

LOOK_AHEAD = 1 << 24  # bytes
SMALL = 1 << 23  # bytes of files that are read twice without a thought
STDIN = "-"
PACKED = (".gz", ".xz", ".lzma", ".bz2", ".zst")
ROWS = (".jsonl", ".ndjson", ".json")

_spent: WeakSet[IO[bytes]] = WeakSet()  # standard inputs that were read

Which = Literal["train", "valid"]


class Document(NamedTuple):
    text: str  # paragraphs are lines
    spans: list[tuple[int, int]] | None  # given spans (entities, errors), in characters, in order
    origin: str  # for messages: "corpus/a.txt, line 17"


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
    wanted = which == "valid"
    return _some((document for document, aside in split(data) if aside == wanted), data, which)


def split(data: Data) -> Iterator[tuple[Document, bool]]:
    """All documents of data.train, and whether each is held out of it."""
    limit = 0.0 if data.valid else data.held_out * 2.0**64
    if limit > 0 and _is_small(data):
        # a share of a few documents may be none of them: then the one with the smallest hash
        hashes = {_hash(document.text) for document in _read(data, data.train, data.dataset)}
        limit = max(limit, min(hashes) + 1) if len(hashes) > 1 else 0.0
    for document in _read(data, data.train, data.dataset):
        yield document, limit > 0 and _hash(document.text) < limit


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


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
    """What the documents are read from, so that a change is seen: files, their sizes and times, and the rules."""
    names = data.valid if which == "valid" and data.valid else data.train
    stands = []
    for name in files(names):
        stat = None if name == STDIN else Path(name).stat()
        stands.append([name, *((stat.st_size, stat.st_mtime_ns) if stat else (0, 0))])
    return {
        "files": stands,
        "dataset": [data.dataset, data.split] if data.dataset else None,
        "field": data.field,
        "spans": data.spans,
        "held_out": [which, data.held_out] if not data.valid else None,
    }


def _read(data: Data, names: Iterable[str], dataset: str | None) -> Iterator[Document]:
    for name in files(names):
        suffixes = [suffix.lower() for suffix in Path(name).suffixes if suffix.lower() not in PACKED]
        kind = suffixes[-1] if suffixes else ""
        if kind == ".parquet":
            yield from _parquet(name, data)
        elif kind in ROWS:
            with _opened(name) as stream:
                yield from _rows(stream, name, data)
        else:
            with _opened(name) as stream:
                yield from _texts(stream, name)
    if dataset:
        yield from _dataset(dataset, data)


def _some(found: Iterable[Document], data: Data, which: Which) -> Iterator[Document]:
    """The documents, or an error when there are none."""
    empty = True
    for document in found:
        empty = False
        yield document
    if empty:
        where = [*(data.valid if which == "valid" and data.valid else data.train), *filter(None, [data.dataset])]
        if not where:
            raise BesagError("no text to train on is named: write files, globs or '-' into data.train.")
        aside = "" if data.valid else f" with {data.held_out:g} of the documents held out"
        raise BesagError(f"the corpus is empty: {', '.join(where)} holds no document for {which}{aside}.")


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """The bytes of a file as they were before packing."""
    if name == STDIN:
        stream = sys.stdin.buffer
        if stream in _spent:
            raise BesagError("standard input was read to its end already: what needs it twice must be given a file.")
        _spent.add(stream)
        yield stream
        return
    suffix = Path(name).suffix.lower()
    try:
        with _unpacked(name, suffix) as stream:
            yield stream
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as failure:
        if suffix not in PACKED or isinstance(failure, FileNotFoundError | PermissionError):
            raise
        raise BesagError(f"{name} cannot be unpacked, it is damaged or no {suffix} file: {failure}") from failure


def _unpacked(name: str, suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        return gzip.open(name, "rb")  # type: ignore[return-value]
    if suffix in (".xz", ".lzma"):
        return lzma.open(name, "rb")
    if suffix == ".bz2":
        return bz2.open(name, "rb")
    if suffix == ".zst":
        zstandard: Any = require("zstandard", "train")
        return zstandard.open(name, "rb")  # type: ignore[no-any-return]
    return open(name, "rb")


class _Line(NamedTuple):
    number: int  # from 1
    text: str  # without its end


def _lines(stream: IO[bytes], name: str) -> Iterator[_Line]:
    position = 0
    for number, raw in enumerate(stream, start=1):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as failure:
            bad = raw[failure.start : failure.end]
            hint = " It may be UTF-16." if number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
            raise BesagError(
                f"{_said(name)} is not UTF-8: byte {bad.hex(' ')} at position {position + failure.start}, "
                f"line {number} ({failure.reason}).{hint} Convert the file, or drop that line."
            ) from None
        position += len(raw)
        if number == 1:
            text = text.removeprefix("\ufeff")
        yield _Line(number, text.rstrip("\r\n"))


def _texts(stream: IO[bytes], name: str) -> Iterator[Document]:
    """Documents between empty lines, or line by line where there are none."""
    source = _lines(stream, name)
    ahead: list[_Line] = []
    seen, gap, parted = 0, False, False
    for line in source:
        ahead.append(line)
        if line.text.strip():
            parted = gap  # an empty line between two that are not
            seen += len(line.text)
        else:
            gap = seen > 0
        if parted or seen > LOOK_AHEAD:
            break

    def all_lines() -> Iterator[_Line]:
        yield from ahead
        ahead.clear()
        yield from source

    if not parted:
        for line in all_lines():
            if line.text.strip():
                yield Document(line.text, None, f"{_said(name)}, line {line.number}")
        return
    block: list[str] = []
    first = 1
    for line in all_lines():
        if line.text.strip():
            first = first if block else line.number
            block.append(line.text)
        elif block:
            yield Document("\n".join(block), None, f"{_said(name)}, line {first}")
            block = []
    if block:
        yield Document("\n".join(block), None, f"{_said(name)}, line {first}")


def _rows(stream: IO[bytes], name: str, data: Data) -> Iterator[Document]:
    for line in _lines(stream, name):
        if not line.text.strip():
            continue
        origin = f"{_said(name)}, line {line.number}"
        try:
            row = json.loads(line.text)
        except ValueError as failure:
            raise BesagError(f"{origin} is no JSON: {failure}. Each line must be one object.") from None
        if not isinstance(row, dict):
            raise BesagError(f"{origin} must be an object such as {{{data.field!r}: …}}, not {line.text[:60]!r}.")
        yield from _document(row, origin, data)


def _parquet(name: str, data: Data) -> Iterator[Document]:
    pyarrow: Any = require("pyarrow.parquet", "bulk")
    wanted = [data.field, *([data.spans] if data.spans else [])]
    with pyarrow.ParquetFile(name) as table:
        known = table.schema_arrow.names
        for field in wanted:
            if field not in known:
                raise BesagError(f"{name} has no field {field!r}, it has {', '.join(known)}.{nearest(field, known)}")
        number = 0
        for batch in table.iter_batches(batch_size=1024, columns=wanted):
            for row in batch.to_pylist():
                number += 1
                yield from _document(row, f"{name}, row {number}", data)


def _dataset(name: str, data: Data) -> Iterator[Document]:
    datasets: Any = require("datasets", "train")
    rows = datasets.load_dataset(name, split=data.split, streaming=data.stream)
    for number, row in enumerate(rows, start=1):
        yield from _document(row, f"{name}[{data.split}], row {number}", data)


def _document(row: dict[str, Any], origin: str, data: Data) -> Iterator[Document]:
    """The document of one row; none where its text is empty."""
    if data.field not in row:
        raise BesagError(f"{origin} has no field {data.field!r}, it has {', '.join(row)}.{nearest(data.field, row)}")
    text = row[data.field]
    if text is None:
        return
    if not isinstance(text, str):
        raise BesagError(f"{origin}: the field {data.field!r} must be text, not {text!r}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as failure:
        raise BesagError(
            f"{origin}: character {failure.start} of its text is half of a surrogate pair, which is no character."
        ) from None
    if text.strip():
        yield Document(text, None if data.spans is None else _spans(row.get(data.spans), text, origin), origin)


def _spans(given: Any, text: str, origin: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for entry in sorted(given or (), key=lambda pair: list(pair) if isinstance(pair, list | tuple) else []):
        pair = entry if isinstance(entry, list | tuple) and len(entry) == 2 else (-1, -1)
        start, end = pair
        floor = spans[-1][1] if spans else 0
        if not (isinstance(start, int) and isinstance(end, int) and floor <= start < end <= len(text)):
            raise BesagError(
                f"{origin}: {entry!r} is no [start, end] in its {len(text)} characters after character {floor}; "
                "spans may not overlap."
            )
        spans.append((start, end))
    return spans


def _said(name: str) -> str:
    return "standard input" if name == STDIN else name


def _neighbour(name: str) -> str:
    folder = Path(name).parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    if any(sign in str(folder) for sign in "*?["):
        return ""
    return nearest(name, (str(Path(folder, each.name)) for each in folder.iterdir())) if folder.is_dir() else ""
