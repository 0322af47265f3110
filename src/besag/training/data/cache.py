"""Tokenised text on disk: every token of every document once, memory-mapped, with checksums.

A folder of three plain arrays and a description:
    tokens.bin     (N,) uint16 or uint32: the documents one after the other, without special tokens around them
    marks.bin      (N,) uint8: what begins at a token (the bits of `tokens.py`); uint16 with the number of its tag
    documents.bin  (D + 1,) int64: document d is tokens documents[d] … documents[d+1]−1
    meta.json      format, shapes, sha256 of each array, what they were made from, and the names of tags

It is written into a folder beside and renamed when whole: a cache is there in full or not at all. Knows no passages,
batches or masks.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Ints
from besag.checks import whole_number
from besag.errors import BesagError, quoted
from besag.masks.law import Statistics
from besag.training.data import sources
from besag.training.data.sources import Document, Which
from besag.training.data.tokens import TAG, Tokens, dtype_of, renumbered, tokenised, width
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary

FORMAT = 1
NAMES = ("tokens", "marks", "documents")
CHUNK = 1 << 24  # elements or bytes looked at at a time

Progress = Callable[[int, int], None]  # documents and tokens so far


class Cache:
    """What lies in the folder, as read-only arrays. Processes share its memory; to send it is to open it anew."""

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder, self.meta = folder, meta
        self.tokens: NDArray[Any]  # (N,)
        self.marks: NDArray[Any]  # (N,)
        self.documents: NDArray[np.int64]  # (D + 1,)
        for name in NAMES:
            about = meta["arrays"][name]
            array = np.memmap(folder / f"{name}.bin", dtype=about["dtype"], mode="r", shape=(about["size"],))
            setattr(self, name, array.view(np.ndarray))

    def __reduce__(self) -> tuple[Any, ...]:
        return Cache.open, (self.folder,)

    @classmethod
    def open(cls, folder: str | Path) -> Cache:
        folder = Path(folder)
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            form = meta["format"]
        except FileNotFoundError:
            raise BesagError(f"there is no cache of tokenised text in {str(folder)!r}.") from None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise _damaged(folder, "its meta.json cannot be read") from None
        if form != FORMAT:
            raise BesagError(
                f"the cache {str(folder)!r} has format {quoted(form)}, this besag reads {FORMAT}: delete it."
            )
        for name in NAMES:
            file = folder / f"{name}.bin"
            try:
                about = meta["arrays"][name]
                wanted = whole_number(about["size"], "size", least=0) * np.dtype(about["dtype"]).itemsize
            except (ValueError, KeyError, TypeError):
                raise _damaged(folder, f"its meta.json does not say what {file.name} is") from None
            size = file.stat().st_size if file.is_file() else None
            if size != wanted:
                raise _damaged(folder, f"{file.name} has {'no' if size is None else size} bytes instead of {wanted}")
        return cls(folder, meta)

    def verify(self) -> None:
        """Read everything, and raise if a byte has changed."""
        for name in NAMES:
            digest = hashlib.sha256()
            with open(self.folder / f"{name}.bin", "rb") as file:
                while part := file.read(CHUNK):
                    digest.update(part)
            if digest.hexdigest() != self.meta["arrays"][name]["sha256"]:
                raise _damaged(self.folder, f"the checksum of {name}.bin is not the one written with it")

    def statistics(self, vocabulary: Vocabulary) -> Statistics:
        size, kinds = width(vocabulary), 1 + len(self.meta.get("tags", ()))
        counts = np.zeros(size * kinds, np.int64)
        for low in range(0, len(self.tokens), CHUNK):
            token, tag = self.tokens[low : low + CHUNK].astype(np.int64), self.marks[low : low + CHUNK] >> TAG
            counts += np.bincount(token * kinds + tag, minlength=size * kinds)
        tagged = counts.reshape(size, kinds)
        written = tuple(vocabulary.token(id) for id in range(size))
        return Statistics(
            tagged.sum(1), _Documents(self), vocabulary.special_ids, written, tagged[:, 1:] if kinds > 1 else None
        )


class _Documents:
    """The ids of each document, as often as they are asked for."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    def __len__(self) -> int:
        return len(self.cache.documents) - 1

    def __iter__(self) -> Iterator[Ints]:
        bounds = self.cache.documents.tolist()
        for low, high in pairwise(bounds):
            yield self.cache.tokens[low:high].astype(np.int64)


def prepare(
    data: Data,
    vocabulary: Vocabulary,
    folder: str | Path,
    which: Which = "train",
    *,
    resume: bool = False,
    progress: Progress | None = None,
    processes: int | None = None,
) -> Cache:
    """The cache of these sources and this tokenizer below `folder`: the one that is there, verified, or a new one.

    Its name holds a hash of all it was made from, so that another tokenizer or other text has a cache of its own.
    Standard input cannot be compared: it is read anew, unless a run is resumed.
    """
    alone = data.unit == "sentences"
    place, made_from = _place(data, vocabulary, folder, which)
    stdin = sources.STDIN in (data.valid if which == "valid" and data.valid else data.train)
    split = stdin and not data.valid and data.held_out > 0  # both caches are made in the one reading there is
    _sweep(place)
    if place.exists() and (resume or not stdin or (split and which == "valid")):
        found = Cache.open(place)
        found.verify()
        return found
    if resume and stdin:
        raise BesagError(f"standard input cannot be read again, and its cache {str(place)!r} is gone: start anew.")

    def build(documents: Iterable[Document], place: Path, made_from: dict[str, Any]) -> Cache:
        return build_cache(
            documents, vocabulary, place, progress=progress, alone=alone, made_from=made_from, processes=processes,
            densest=made_from["sources"].get("densest"),
        )  # fmt: skip

    if not split or which == "valid":
        return build(sources.documents(data, which), place, made_from)
    aside: list[Document] = []  # a small share, kept in memory
    built = build(_others(sources.split(data), aside), place, made_from)
    other = _place(data, vocabulary, folder, "valid")
    shutil.rmtree(other[0], ignore_errors=True)
    if aside:
        build(aside, *other)
    return built


def prepared(
    documents: Iterable[Document],
    vocabulary: Vocabulary,
    folder: str | Path,
    name: str,
    read_from: dict[str, Any],
    *,
    processes: int | None = None,
) -> Cache:
    """The cache of documents that were `read_from` what is said: the one that is there, verified, or a new one."""
    made_from = {"format": FORMAT, "tokenizer": tokenizer_digest(vocabulary), "sources": read_from, "alone": False}
    place = Path(folder, f"{name}-{_key(made_from)}")
    _sweep(place)
    if place.exists():
        found = Cache.open(place)
        found.verify()
        return found
    return build_cache(documents, vocabulary, place, made_from=made_from, processes=processes)


def _others(documents: Iterable[tuple[Document, bool]], aside: list[Document]) -> Iterator[Document]:
    for document, kept in documents:
        if kept:
            aside.append(document)
        else:
            yield document


def _place(data: Data, vocabulary: Vocabulary, folder: str | Path, which: Which) -> tuple[Path, dict[str, Any]]:
    """Where the cache lies, and what it is made from."""
    made_from = {
        "format": FORMAT,
        "tokenizer": tokenizer_digest(vocabulary),
        "sources": sources.fingerprint(data, which),
        "alone": data.unit == "sentences",
    }
    return Path(folder, f"{which}-{_key(made_from)}"), made_from


def _key(made_from: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]


def build_cache(
    documents: Iterable[Document],
    vocabulary: Vocabulary,
    folder: str | Path,
    *,
    progress: Progress | None = None,
    alone: bool = False,
    densest: float | None = None,
    made_from: dict[str, Any] | None = None,
    processes: int | None = None,
) -> Cache:
    """Tokenise `documents` into `folder`; what is there is replaced when the new cache is whole, not before.

    `alone`: each sentence is tokenised by itself. `densest`: documents of more tokens a character are left out.
    `made_from` is written down beside the arrays.
    """
    folder = Path(folder)
    partial = folder.parent / f".{folder.name}.partial-{socket.gethostname()}-{os.getpid()}"
    with _writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
    try:
        groups = tokenised(documents, vocabulary, alone=alone, densest=densest, processes=processes)
        tags: dict[str, int] = {}
        arrays = _write(groups, vocabulary, partial, folder, progress, tags)
        meta = {"format": FORMAT, "arrays": arrays, "made_from": made_from or {}, "alone": alone}
        meta |= {"tags": [*tags]} if tags else {}
        meta["tokenizer"] = tokenizer_digest(vocabulary)
        with _writing(folder):
            with open(partial / "meta.json", "w", encoding="utf-8") as file:
                json.dump(meta, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            _swap(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Cache.open(folder)


def tokenizer_digest(vocabulary: Vocabulary) -> str:
    """sha256 of all that decides how text becomes ids."""
    tokenizer = vocabulary.tokenizer
    if tokenizer.is_fast:
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        said = tokenizer.backend_tokenizer.to_str()
    else:
        settings = {name: str(each) for name, each in tokenizer.init_kwargs.items() if "path" not in name}
        said = json.dumps([type(tokenizer).__name__, tokenizer.get_vocab(), settings], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _file(path: Path) -> IO[bytes]:
    """To be written without a buffer of its own: what a full disk does not take is told at once, not at the end."""
    return open(path, "wb", buffering=0)


class _Array:
    """One array as it is written: its file, its size, its checksum."""

    def __init__(self, file: IO[bytes], dtype: np.dtype[Any]) -> None:
        self.file, self.dtype = file, dtype
        self.size, self.digest = 0, hashlib.sha256()

    def add(self, part: NDArray[Any]) -> None:
        raw = np.ascontiguousarray(part, self.dtype).data.cast("B")
        done = 0
        while done < len(raw):
            done += self.file.write(raw[done:])
        self.digest.update(raw)
        self.size += len(part)


def _write(
    groups: Iterator[Tokens],
    vocabulary: Vocabulary,
    partial: Path,
    folder: Path,
    progress: Progress | None,
    tags: dict[str, int],
) -> dict[str, dict[str, Any]]:
    """What was written of each array; the numbers of all tags are written down in `tags`."""
    first = list(islice(groups, 1))
    marks = first[0].marks.dtype if first else np.dtype(np.uint8)
    kinds = {"tokens": dtype_of(vocabulary), "marks": marks, "documents": np.dtype(np.int64)}
    with ExitStack() as files:
        arrays = {name: _Array(files.enter_context(_file(partial / f"{name}.bin")), kinds[name]) for name in NAMES}
        arrays["documents"].add(np.zeros(1, np.int64))
        for group in chain(first, groups):
            with _writing(folder):
                arrays["documents"].add(group.documents[1:] + arrays["tokens"].size)
                arrays["tokens"].add(group.tokens)
                arrays["marks"].add(renumbered(group, tags))
            if progress is not None:
                progress(arrays["documents"].size - 1, arrays["tokens"].size)
        if not arrays["tokens"].size:
            raise BesagError("the corpus is empty: not one token came out of its documents.")
        with _writing(folder):
            for array in arrays.values():
                os.fsync(array.file.fileno())
    return {
        name: {"dtype": array.dtype.name, "size": array.size, "sha256": array.digest.hexdigest()}
        for name, array in arrays.items()
    }


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """What goes wrong in writing, told as what it means here."""
    try:
        yield
    except OSError as failure:
        full = failure.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "the disk is full" if full else str(failure)
        raise BesagError(
            f"the cache {str(folder)!r} could not be written: {why}. Nothing half-written is left; "
            + ("free some space, or name a folder on another disk in data.cache." if full else "see data.cache.")
        ) from failure


def _swap(partial: Path, folder: Path) -> None:
    """Put the new folder in the place of the old one."""
    old = partial.with_name(partial.name.replace(".partial-", ".old-"))
    if folder.exists():
        os.rename(folder, old)
    os.rename(partial, folder)
    shutil.rmtree(old, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what a killed process of this machine left of the same cache; what was whole by then takes its place."""
    here = socket.gethostname()
    for kind in ("old", "partial"):
        for left in folder.parent.glob(f".{glob.escape(folder.name)}.{kind}-{glob.escape(here)}-*"):
            number = left.name.rpartition("-")[2]
            if not number.isdigit() or _alive(int(number)):
                continue
            if kind == "old" and not folder.exists():  # killed between the two renames
                whole = left.with_name(left.name.replace(".old-", ".partial-"))
                os.rename(whole if whole.exists() else left, folder)
            shutil.rmtree(left, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _damaged(folder: Path, how: str) -> BesagError:
    return BesagError(f"the cache {str(folder)!r} is damaged: {how}. Delete the folder, and it is built anew.")
