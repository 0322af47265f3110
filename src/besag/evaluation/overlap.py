"""Does a training corpus hold what a model is judged on? Runs of words that stand in both.

Words are runs of letters, digits and apostrophes inside of them, lower case, accents kept; everything else separates.
An evaluation text of at least n words is *seen* where n of its words in a row stand in one document of the corpus; a
shorter one where all of its words do, in a row. (A document is what empty lines separate, so line breaks hide nothing.)

The runs of the evaluation texts are hashed (64 bits, polynomial in word hashes); the corpus streams past them in
blocks, with a rolling sum: its n-grams cost one multiplication each and are looked up at once. Memory is that of the
evaluation texts, a block and the longest document, whatever the corpus is. Two runs share a hash with a chance of about
2⁻⁶⁴: with 10⁸ words against 10⁶ runs, 5 × 10⁻⁶ in all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Ints
from besag.checks import checked
from besag.errors import BesagError, quoted
from besag.results import data
from besag.results.data import json_ready
from besag.results.grid import Grid, Line
from besag.results.result import Presented
from besag.results.status import Status

if TYPE_CHECKING:
    from pandas import DataFrame

LENGTH = 12  # words
SHORTEST = 4  # words of a text that is looked for at all: shorter ones stand everywhere
SHOWN = 10  # texts in a table
BLOCK = 1 << 20  # words looked up at a time
KNOWN = 1 << 21  # distinct words whose hashes are remembered
FILTER_BITS = 20  # bits of a hash that are looked at first: most runs of the corpus end there
BASE = np.uint64(0x9E3779B97F4A7C15)
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

Hashes = NDArray[np.uint64]


def words(text: str) -> list[str]:
    """What is compared.

    >>> words("“Don’t,” she said: 3,000 cats!")
    ["don't", 'she', 'said', '3', '000', 'cats']
    """
    return WORD.findall(text.lower().replace("’", "'"))


class Seen(NamedTuple):
    """A text that stands in the corpus, or a run of whose words does."""

    text: str
    place: int  # of the text among all, from 0
    run: str  # the first of its runs that was found
    runs: int  # how many of its runs were found …
    of: int  # … of how many
    where: str  # the document that had the first run found in the corpus


@dataclass(frozen=True, eq=False, repr=False)
class Overlap(Presented):
    texts: int  # compared
    skipped: int  # too short to be looked for
    length: int
    words: int  # of the corpus
    documents: int
    seen: tuple[Seen, ...]  # in the order of the texts

    @property
    def share(self) -> float:
        """Of the texts compared, those seen."""
        return len(self.seen) / self.texts if self.texts else 0.0

    def table(self) -> list[dict[str, Any]]:
        """One row for each text that was seen: which, and where."""
        return [one._asdict() for one in self.seen]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        about = {name: getattr(self, name) for name in ("texts", "skipped", "length", "words", "documents", "share")}
        return dict(json_ready({**self._answers(), **about, "seen": self.table()}))

    def to_pandas(self) -> DataFrame:
        """One row a text that was seen."""
        return data.frame(self, self.table(), Seen._fields, length=self.length)

    @property
    def status(self) -> Status:
        """Partly, where texts were too short to be looked for."""
        return Status.PARTLY if self.skipped else Status.OK

    @property
    def facts(self) -> list[str]:
        """What a reader must know about the texts seen, most important first."""
        skipped = f"{self.skipped:,} texts of fewer than {SHORTEST} words not looked for"
        return [
            f"{len(self.seen):,} of {self.texts:,} texts seen ({100 * self.share:.2f} %)",
            f"by {self.length} words in a row, or all words of a shorter text",
            *([skipped] if self.skipped else []),
            f"in {self.words:,} words of {self.documents:,} documents",
        ]

    def _grids(self) -> list[Grid]:
        rows = [Line((str(one.place), one.run, one.where), hint=one.text) for one in self.seen[:SHOWN]]
        return [Grid(("text", "seen", "in"), rows, left=(1, 2))]


@checked
def overlap(corpus: Iterable[str | tuple[str, str]], texts: Sequence[str], *, length: int = LENGTH) -> Overlap:
    """Which texts stand in a corpus, word by word?

    Args:
        corpus: documents, or (document, where it comes from); streamed.
        texts: to look for.
        length: how many words in a row must be the same; all words, in a row, of a shorter text.

    Returns:
        An `Overlap`: which texts were seen, and where.

    Examples:
        >>> corpus = ["It was late. The girl sees the dogs."]
        >>> besag.overlap(corpus, ["The girl sees the dogs.", "The dogs run away."]).share
        0.5
    """
    if length < SHORTEST:
        raise BesagError(f"length={length}: runs of fewer than {SHORTEST} words stand everywhere")
    if isinstance(texts, str) or isinstance(corpus, str):
        raise BesagError("overlap compares documents with texts: give lists of texts, not one text")
    wanted = _Wanted(texts, length)
    stream = _Stream(corpus)
    for block in stream:
        wanted.look(block)
    return Overlap(wanted.compared, wanted.skipped, length, stream.words, stream.documents, tuple(wanted.seen()))


class _Block(NamedTuple):
    """Words of the corpus; runs may not cross the bounds of documents."""

    hashes: Hashes  # (N,)
    document: Ints  # (N,) number of the document each word stands in
    names: dict[int, str]  # where each document comes from


class _Hasher:
    """64 bits for each distinct word, the same in every process."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __call__(self, found: Sequence[str]) -> Hashes:
        known = self.known
        if len(known) > KNOWN:
            known.clear()
        for word in found:
            if word not in known:
                digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
                known[word] = int.from_bytes(digest, "little")
        return np.fromiter((known[word] for word in found), np.uint64, len(found))


def _runs(hashes: Hashes, length: int) -> Hashes:  # (N,) -> (N − length + 1,)
    """The hash of every run of `length` words: Σ_j h_{i+j} B^j modulo 2^64, by doubling the length."""
    total, have, power = hashes, 1, BASE
    result: Hashes | None = None
    done, shift = 0, np.uint64(1)  # `result` covers the first `done` words
    rest = length
    with np.errstate(over="ignore"):
        while rest:
            if rest & 1:
                part = total[done:] if result is not None else total
                if result is None:
                    result = part
                else:
                    size = min(len(result), len(part))
                    result = result[:size] + shift * part[:size]
                shift, done = shift * power, done + have
            rest >>= 1
            if rest:
                total = total[:-have] + power * total[have:] if len(total) > have else total[:0]
                have, power = 2 * have, power * power
    assert result is not None
    return result[: max(len(hashes) - length + 1, 0)]


class _Wanted:
    """The runs of the evaluation texts, by their length."""

    def __init__(self, texts: Sequence[str], length: int) -> None:
        self.texts = texts
        self.skipped = self.compared = 0
        hasher = _Hasher()
        self.split: list[list[str]] = []
        found: dict[int, list[tuple[Hashes, int]]] = {}
        self.sizes = np.zeros(len(texts), np.int64)  # words of the runs of each text
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise BesagError(f"text {index + 1} is {quoted(text)}, not a text")
            split = words(text)
            self.split.append(split)
            if len(split) < SHORTEST:
                self.skipped += 1
                continue
            self.compared += 1
            self.sizes[index] = min(length, len(split))
            found.setdefault(min(length, len(split)), []).append((_runs(hasher(split), min(length, len(split))), index))
        self.tables: dict[int, tuple[Hashes, Ints, Ints]] = {}  # length → sorted hashes, text, place in it
        for size, parts in found.items():
            hashes = np.concatenate([part for part, _ in parts])
            owner = np.repeat([index for _, index in parts], [len(part) for part, _ in parts])
            place = np.concatenate([np.arange(len(part)) for part, _ in parts])
            order = np.argsort(hashes, kind="stable")
            self.tables[size] = hashes[order], owner[order], place[order]
        self.filters: dict[int, NDArray[np.bool_]] = {}
        for size, (hashes, _, _) in self.tables.items():
            self.filters[size] = np.zeros(1 << FILTER_BITS, np.bool_)
            self.filters[size][hashes >> np.uint64(64 - FILTER_BITS)] = True
        self.hit = {size: np.zeros(len(table[0]), np.bool_) for size, table in self.tables.items()}
        self.where: dict[int, str] = {}  # text → the document that had it first

    def look(self, block: _Block) -> None:
        for size, (known, owner, _) in self.tables.items():
            if len(block.hashes) < size:
                continue
            runs = _runs(block.hashes, size)
            whole = block.document[: len(runs)] == block.document[size - 1 :]
            maybe = np.flatnonzero(self.filters[size][runs >> np.uint64(64 - FILTER_BITS)] & whole)
            place = np.minimum(np.searchsorted(known, runs[maybe]), len(known) - 1)
            found = known[place] == runs[maybe]
            here, firsts = maybe[found], place[found]
            _, once = np.unique(firsts, return_index=True)  # the first place of each run, which may have many
            for one, first in zip(here[np.sort(once)].tolist(), firsts[np.sort(once)].tolist(), strict=True):
                if self.hit[size][first]:
                    continue  # an earlier block had it
                last = int(np.searchsorted(known, known[first], side="right"))
                self.hit[size][first:last] = True
                for text in owner[first:last].tolist():
                    self.where.setdefault(text, block.names[int(block.document[one])])

    def seen(self) -> Iterator[Seen]:
        runs: dict[int, list[int]] = {}
        for size, (_, owner, place) in self.tables.items():
            for one in np.flatnonzero(self.hit[size]).tolist():
                runs.setdefault(int(owner[one]), []).append(int(place[one]))
        for index in sorted(runs):
            size, first = int(self.sizes[index]), min(runs[index])
            run = " ".join(self.split[index][first : first + size])
            of = len(self.split[index]) - size + 1
            yield Seen(self.texts[index], index, run, len(runs[index]), of, self.where[index])


class _Stream:
    """A corpus in blocks of about `BLOCK` words, of whole documents."""

    def __init__(self, corpus: Iterable[str | tuple[str, str]]) -> None:
        self.corpus = corpus
        self.words = self.documents = 0

    def __iter__(self) -> Iterator[_Block]:
        hasher = _Hasher()
        parts: list[Hashes] = []
        numbers: list[Ints] = []
        names: dict[int, str] = {}
        waiting = 0
        for number, entry in enumerate(self.corpus):
            text, name = entry if isinstance(entry, tuple) else (entry, f"document {number + 1}")
            hashes = hasher(words(text))
            self.words += len(hashes)
            self.documents += 1
            parts.append(hashes)
            numbers.append(np.full(len(hashes), number))
            names[number] = name
            waiting += len(hashes)
            if waiting >= BLOCK:
                yield _Block(np.concatenate(parts), np.concatenate(numbers), names)
                parts, numbers, names, waiting = [], [], {}, 0
        if parts:
            yield _Block(np.concatenate(parts), np.concatenate(numbers), names)
