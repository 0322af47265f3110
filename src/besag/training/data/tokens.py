"""Documents as token ids, with marks that say where words, sentences and given spans begin, and which tags were given.

Knows `Vocabulary.encode` and the rules for sentences. A paragraph is tokenised whole, or, where every passage is to be
one sentence, each sentence alone, as it will be scored. Only a line longer than `PIECE` is cut, before white space, so
that memory stays bounded. Many documents are tokenised by several processes, in order: the result is the same for any
number of them.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Bools, Ints
from besag.errors import BesagError, quoted
from besag.training.data.children import begun_deaf, turn_deaf
from besag.training.data.sentences import sentences
from besag.training.data.sources import Document
from besag.vocabulary import Vocabulary

WORD, SENTENCE, IN_SPAN, SPAN = 1, 2, 4, 8  # bits of a mark: begins a word, begins a sentence, in a span, begins a span
TAG = 8  # bits of a mark before the number of its tag, from 1 on; 0: none
MOST_TAGS = 255
PIECE = 100_000  # characters: the longest text that is tokenised whole
GROUP = 1_000_000  # characters of documents that are one piece of work
CALL = 250_000  # characters given to the tokenizer at a time: its answers take a hundred times their room
ALONE = 4  # groups: less text is not worth starting processes for


class Tokens(NamedTuple):
    tokens: NDArray[np.unsignedinteger[Any]]  # (N,)
    marks: NDArray[np.unsignedinteger[Any]]  # (N,) one byte, two where tags were given
    documents: Ints  # (D + 1,) bounds
    tags: tuple[str, ...] = ()  # that were given, in the order of their numbers


def width(vocabulary: Vocabulary) -> int:
    """One more than the largest id: some vocabularies leave numbers out."""
    return max(vocabulary.size, 1 + int(max(vocabulary.tokenizer.get_vocab().values())))


def dtype_of(vocabulary: Vocabulary) -> np.dtype[Any]:
    return np.dtype(np.uint16 if width(vocabulary) <= 1 << 16 else np.uint32)


def tokenise(
    documents: list[Document], vocabulary: Vocabulary, *, alone: bool = False, densest: float | None = None
) -> Tokens:
    """All these documents; one without a single token is left out. `alone`: sentence by sentence.

    `densest`: a document with more tokens than this share of its characters is left out, too.
    """
    base = np.cumsum([0, *(len(document.text) + 1 for document in documents)])  # as if written under one another
    texts: list[str] = []
    first: list[int] = []  # (P,) where each piece begins
    owner: list[int] = []  # (P,) its document
    begins: list[int] = []  # (S,) where each sentence begins
    before: list[int] = []  # (D,) sentences of all documents before
    spans: list[tuple[int, int]] = []
    tags: list[tuple[int, int, str]] = []
    for number, (document, shift) in enumerate(zip(documents, base[:-1].tolist(), strict=True)):
        found = sentences(document.text)
        before.append(len(begins))
        begins += [shift + start for start, _ in found]
        spans += [(shift + start, shift + end) for start, end in document.spans or ()]
        tags += [(shift + start, shift + end, tag) for start, end, tag in document.tags or ()]
        for start, end in _pieces(document.text, found if alone else _paragraphs(document.text)):
            texts.append(document.text[start:end])
            first.append(shift + start)
            owner.append(number)

    kind = dtype_of(vocabulary)
    empty = np.zeros(0, np.int32)
    parts: list[tuple[np.ndarray, ...]] = [(np.zeros(0, kind), empty, empty, empty, empty)]
    for begin_of, end_of in _groups(texts):
        for index, encoded in enumerate(vocabulary.encode(texts[begin_of:end_of]), start=begin_of):
            inner = ~encoded.special
            ids = encoded.ids[inner].astype(kind)
            start, end = (encoded.offsets[inner] + first[index]).astype(np.int32).T.copy()
            piece = np.full(len(ids), index, np.int32)
            parts.append((ids, start, end, encoded.words[inner].astype(np.int32), piece))
    ids, begin, stop, word, row = (np.concatenate(each) for each in zip(*parts, strict=True))
    document_of = np.array(owner, np.int64)[row]  # (N,)

    marks: NDArray[np.unsignedinteger[Any]] = np.zeros(len(ids), np.uint8)
    marks[_changes(row) | _changes(word)] |= WORD
    sentence = np.searchsorted(np.array(begins), begin, side="right") - 1
    sentence = np.maximum(sentence, np.array(before, np.int64)[document_of])  # white space before the first is its own
    marks[_changes(sentence)] |= SENTENCE
    if spans:
        which, inside = _standing(begin, stop, spans)
        marks[inside] |= IN_SPAN
        marks[inside & (_changes(which) | np.append(True, ~inside[:-1])[: len(ids)])] |= SPAN
    names = tuple(dict.fromkeys(tag for _, _, tag in tags))
    if any(document.tags is not None for document in documents):
        marks = (marks | _tagged(begin, stop, tags, names) << TAG).astype(np.uint16)
    counts = np.bincount(document_of, minlength=len(documents))
    if densest is not None:
        kept = counts <= densest * np.array([len(document.text) for document in documents])  # (D,)
        ids, marks, counts = ids[kept[document_of]], marks[kept[document_of]], counts[kept]
    return Tokens(ids, marks, np.append(0, np.cumsum(counts[counts > 0])).astype(np.int64), names)


def renumbered(text: Tokens, known: dict[str, int]) -> NDArray[np.unsignedinteger[Any]]:
    """(N,) the marks, with the numbers that tags have in `known`, where new ones are written down."""
    if not text.tags:
        return text.marks
    number = [0, *(known.setdefault(tag, len(known) + 1) for tag in text.tags)]
    _refuse_many(known)
    own = (1 << TAG) - 1
    marks: NDArray[np.uint16] = (text.marks & own) | np.array(number, np.uint16)[text.marks >> TAG] << TAG
    return marks


def _refuse_many(names: Iterable[str]) -> None:
    if beyond := [*names][MOST_TAGS:]:
        raise BesagError(
            f"there are more than {MOST_TAGS} different tags, {quoted(beyond[0])} among them: give classes."
        )


def _standing(begin: Ints, stop: Ints, spans: list[tuple[int, int]]) -> tuple[Ints, Bools]:  # (N,), (N,)
    """In which of the spans, one after the other, each token stands, if it stands in any."""
    opens, closes = np.array(spans).reshape(-1, 2).T
    which = np.searchsorted(closes, begin, side="right")
    return which, np.append(opens, np.iinfo(np.int64).max)[which] < np.maximum(stop, begin + 1)


def _tagged(begin: Ints, stop: Ints, tags: list[tuple[int, int, str]], names: tuple[str, ...]) -> NDArray[np.uint16]:
    """(N,) the number of the tag that each token stands in, from 1 on; 0: in none."""
    _refuse_many(names)
    number = {name: place for place, name in enumerate(names, start=1)}
    which, inside = _standing(begin, stop, [(start, end) for start, end, _ in tags])
    said = np.array([*(number[tag] for _, _, tag in tags), 0], np.uint16)  # the last one: behind them all
    return np.where(inside, said[which], 0).astype(np.uint16)


def tokenised(
    documents: Iterable[Document],
    vocabulary: Vocabulary,
    *,
    alone: bool = False,
    densest: float | None = None,
    processes: int | None = None,
) -> Iterator[Tokens]:
    """The documents in groups, in order; `processes` work on them (if not given, one a core), once there are many."""
    groups = _grouped(documents)
    few = list(islice(groups, ALONE))
    processes = cores() if processes is None else processes
    if processes <= 1 or len(few) < ALONE:
        for group in chain(few, groups):
            yield tokenise(group, vocabulary, alone=alone, densest=densest)
        return
    given = {"vocabulary": vocabulary, "alone": alone, "densest": densest}
    method = "fork" if sys.platform == "linux" else None  # needs no guarded main module; touches no device
    with ProcessPoolExecutor(
        processes, multiprocessing.get_context(method), initializer=_begin, initargs=(given, os.getpid())
    ) as pool:
        waiting: deque[Future[Tokens]] = deque()
        try:
            for group in chain(few, groups):
                with begun_deaf():  # a pool begins its processes when it is given work
                    waiting.append(pool.submit(_work, group))
                if len(waiting) > 2 * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise BesagError(
                "a process that tokenised died (killed, or out of memory); fewer processes need less memory."
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_mine: dict[str, Any] = {}  # what a process that tokenises was given when it began


def _begin(given: dict[str, Any], parent: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each process is one thread
    turn_deaf()
    _mine.update(given)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)  # nobody is left to wait for what we do

    threading.Thread(target=watch, daemon=True).start()


def _work(group: list[Document]) -> Tokens:
    return tokenise(group, **_mine)


def _grouped(documents: Iterable[Document]) -> Iterator[list[Document]]:
    group: list[Document] = []
    size = 0
    for document in documents:
        group.append(document)
        size += len(document.text)
        if size >= GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        if line.strip():
            yield start, start + len(line)
        start += len(line) + 1


def _pieces(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans, those that are too long cut before white space (anywhere, if there is none in the second half)."""
    for start, end in spans:
        while end - start > PIECE:
            cut = text.rfind(" ", start + PIECE // 2, start + PIECE)
            cut = start + PIECE if cut < 0 else cut
            yield start, cut
            start = cut
        yield start, end


def _groups(texts: list[str]) -> Iterator[tuple[int, int]]:
    low, size = 0, 0
    for high, text in enumerate(texts):
        if size and size + len(text) > CALL:
            yield low, high
            low, size = high, 0
        size += len(text)
    if size:
        yield low, len(texts)


def _changes(key: np.ndarray) -> Bools:
    """(N,) is this the first, or other than the one before?"""
    return np.append(True, key[1:] != key[:-1])[: len(key)]
