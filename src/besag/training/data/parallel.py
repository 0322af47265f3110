"""Parallel text: pairs of a source and its target, out of two files line by line, or of rows with a field for each.

    data.source, data.target      files; line k of the one is the source of line k of the other
    data.train, data.source_field rows of TSV, CSV, JSON Lines or Parquet; the target stands in data.field
    data.train, data.template     the same, where several columns are the source

`data.answers` says what is written for a target. Files that do not have the same number of lines are refused. A pair
with an empty side is left out, and that is told. Everything is read on, one pair at a time. Held out are pairs by the
hash of both sides, as documents are. Two caches hold the tokens: pair k is document k of both. Knows no batches and no
masks.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from besag import templates
from besag.arrays import Bools
from besag.errors import BesagError, nearest, quoted
from besag.files import lines
from besag.files.columns import text
from besag.files.rows import NoRows, read
from besag.training.data import sources
from besag.training.data.cache import Cache, prepared
from besag.training.data.sources import Document, NoDocuments, Which
from besag.training.recipe import Data
from besag.training.recipe.translation import in_rows
from besag.vocabulary import Vocabulary

SIDES = ("source", "target")


class Pair(NamedTuple):
    source: Document
    target: Document
    columns: Mapping[str, str] = {}  # what the source is made of, by its names in a template; nobody writes to it


class Parallel(NamedTuple):
    """Tokenised pairs: document k of the one is the source of document k of the other."""

    source: Cache
    target: Cache

    def fitting(self, room: int) -> Bools:
        """(D,) which pairs have no more than `room` tokens on either side."""
        fits: Bools = (np.diff(self.source.documents) <= room) & (np.diff(self.target.documents) <= room)
        return fits


def pairs(data: Data, which: Which = "train") -> Iterator[Pair]:
    """All pairs with text on both sides, in the order of the files."""
    if which == "valid" and (data.valid or data.valid_source):
        found = _told(_read(data, "valid"))
    else:
        limit = 0.0 if data.valid or data.valid_source else _limit(data)
        wanted = which == "valid"
        found = (pair for pair in _told(_read(data, "train"), wanted) if (_hash(pair) < limit) == wanted)
    empty = True
    for pair in found:
        empty = False
        yield pair
    if empty:
        raise NoDocuments(f"the parallel text is empty: {', '.join(names(data, which))} holds no pair for {which}.")


def texts(data: Data) -> Iterator[str]:
    """Both sides of all pairs that are trained on, for a tokenizer that both share."""
    for pair in pairs(data):
        yield pair.source.text
        yield pair.target.text


def names(data: Data, which: Which = "train") -> list[str]:
    """The files that pairs are read from."""
    if which == "valid" and (data.valid or data.valid_source):
        return sources.files([*data.valid, *data.valid_source, *data.valid_target])
    return sources.files([*data.train, *data.source, *data.target])


def fingerprint(data: Data, which: Which = "train") -> dict[str, Any]:
    """What the pairs are read from, so that a change is seen."""
    stands = [[name, Path(name).stat().st_size, Path(name).stat().st_mtime_ns] for name in names(data, which)]
    held = None if data.valid or data.valid_source else [which, data.held_out]
    line = {"template": data.template, "answers": dict(data.answers)} if data.pairs == "line" else {}
    return {"files": stands, "fields": [data.source_field, data.field], "held_out": held, **line}


def prepare(
    data: Data, vocabulary: Vocabulary, folder: str | Path, which: Which = "train", *, processes: int | None = None
) -> Parallel:
    """The two caches of these pairs and this tokenizer below `folder`: those that are there, verified, or new ones."""
    sources_of = fingerprint(data, which)
    made = [
        prepared(
            (getattr(pair, side) for pair in pairs(data, which)),
            vocabulary,
            folder,
            f"{which}-{side}",
            {**sources_of, "side": side},
            processes=processes,
        )
        for side in SIDES
    ]
    counts = [len(cache.documents) - 1 for cache in made]
    if counts[0] != counts[1]:
        raise BesagError(
            f"of the parallel text {counts[0]:,} sources and {counts[1]:,} targets have tokens: some hold nothing that "
            "this tokenizer can write. Leave such pairs out"
        )
    return Parallel(*made)


# ---- reading


def _read(data: Data, which: Which) -> Iterator[Pair]:
    one, other = (data.source, data.target) if which == "train" else (data.valid_source, data.valid_target)
    if not in_rows(data):
        left, right = sources.files(one), sources.files(other)
        if len(left) != len(right):
            raise BesagError(f"{len(left)} files of sources and {len(right)} of targets: each needs its partner.")
        for two in zip(left, right, strict=True):
            for pair in _beside(*two):
                yield pair._replace(target=_answered(data, pair.target))
        return
    named = _columns(data)
    for name in sources.files(data.train if which == "train" else data.valid):
        try:
            for row in read(name, only=[*named.values(), data.field]):
                if not isinstance(row.values, Mapping):
                    raise BesagError(
                        f"{row.where}: a plain text has no field {next(iter(named.values()))!r}; pairs stand in TSV, "
                        "CSV, JSON Lines or Parquet, or in two files (data.source, data.target)"
                    )
                yield _pair(data, named, row.values, row.where)
        except NoRows:  # an empty shard is no reason to stop
            continue


def _columns(data: Data) -> dict[str, str]:
    """The columns that a source is made of, by their names in a template."""
    names = templates.columns(data.template) if data.pairs == "line" else ["source"]
    return {name: (data.source_field or name) if name == "source" else name for name in names}


def _pair(data: Data, named: Mapping[str, str], row: Mapping[str, object], where: str) -> Pair:
    plain = {name: str(cell) for name, cell in row.items() if isinstance(cell, int | float)}  # labels are numbers, too
    row = {**row, **plain} if data.pairs == "line" else row
    cells = {name: text(row, column, where).strip() for name, column in named.items()}
    target = Document(text(row, data.field, where), None, where)
    source = " ".join(cells.values()) if all(cells.values()) else ""  # with a column empty the pair is left out
    return Pair(Document(source, None, where), _answered(data, target), cells)


def _answered(data: Data, target: Document) -> Document:
    """What is written for a target."""
    label = target.text.strip()
    if not data.answers or not label:
        return target
    if label not in data.answers:
        known = ", ".join(map(repr, data.answers))
        raise BesagError(
            f"{target.origin}: the target is {label!r}, and data.answers has {known}.{nearest(label, data.answers)}"
        )
    return target._replace(text=data.answers[label])


def _beside(source: str, target: str) -> Iterator[Pair]:
    for one, other in zip_longest(lines.lines_of(source), lines.lines_of(target)):
        if one is None or other is None:
            longer, shorter, line = (source, target, one) if other is None else (target, source, other)
            raise BesagError(
                f"{shorter} ends after line {line[0] - 1}, and line {line[0]} of {longer}, {quoted(line[1])}, has no "
                "partner: line by line, sources and targets belong together."
            )
        yield Pair(
            Document(one[1], None, f"{source}, line {one[0]}"), Document(other[1], None, f"{target}, line {other[0]}")
        )


def _told(found: Iterable[Pair], quiet: bool = False) -> Iterator[Pair]:
    """The pairs with text on both sides; what is left out is told at the end."""
    left_out, first = 0, ""
    for pair in found:
        for side in pair[:2]:
            if "\n" in side.text.strip():
                raise BesagError(f"{side.origin}: {quoted(side.text)} has several lines; a side of a pair is one.")
        bare = [side for side in pair[:2] if not side.text.strip()]
        if bare:
            left_out, first = left_out + 1, first or bare[0].origin
        else:
            source, target = (side._replace(text=side.text.strip()) for side in pair[:2])
            yield pair._replace(source=source, target=target)
    if left_out and not quiet:
        warnings.warn(f"{left_out:,} pairs have an empty side and are left out; the first: {first}", stacklevel=2)


# ---- held out


def _hash(pair: Pair) -> int:
    return sources.hash_of(f"{pair.source.text}\t{pair.target.text}")


def _limit(data: Data) -> float:
    """Below this hash a pair is held out; of a small corpus at least one pair is."""
    limit = data.held_out * 2.0**64
    if limit > 0 and sum(Path(name).stat().st_size for name in names(data)) < sources.SMALL:
        hashes = {_hash(pair) for pair in _told(_read(data, "train"), quiet=True)}
        limit = max(limit, min(hashes) + 1) if len(hashes) > 1 else 0.0
    return limit
