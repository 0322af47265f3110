"""A job and its folder: what was asked for, which shards are finished, and going on with the others.

    DIR/manifest.json      what makes two jobs the same (the fingerprint), and where the rows of the inputs stand
    DIR/journal.jsonl      a line for each shard when it was done: rows, tokens, statuses; only to tell how far it is
    DIR/shards/000012.tsv  a finished shard; 000012.failed.tsv has failed rows, and is tried again by a resumed job

A shard is finished when its file is there, and it is there whole or not at all: so a job that was killed at any moment
goes on with what is missing, and no row is lost or there twice. Knows nothing of how shards are worked on.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from besag.bulk.index import Place, Shard, Source, identity, look, shards
from besag.bulk.journal import Journal
from besag.bulk.reading import Reader, first_record, settled
from besag.bulk.shapes import Format, Shape
from besag.bulk.store import Folder, is_url
from besag.bulk.verbs import Verb
from besag.bulk.working import SHARDS, Note, Work, shard_name
from besag.errors import BesagError, quoted
from besag.files.claim import Claim
from besag.files.inputs import Layout
from besag.files.progress import differences

MANIFEST, KIND = "manifest.json", "besag bulk"
SHARD = 2048  # rows, at least: each costs a rename and a message, whatever is in it
MOST_UNITS = 256  # tasks that read
_NAME = re.compile(r"(\d{6,})(\.failed)?\.(tsv|csv|jsonl|parquet)")

Pool: TypeAlias = Callable[[Reader, Sequence[Sequence[Shard]], Work], Iterator[Note]]


@dataclass(frozen=True)
class Job:
    """A job whose inputs are known."""

    folder: Folder
    fingerprint: Mapping[str, Any]
    sources: list[Source]
    layouts: list[Layout]
    shape: Shape
    size: int  # rows of a shard
    block: int  # rows that go to the engine together

    @property
    def rows(self) -> int:
        return sum(source.rows for source in self.sources)

    @property
    def count(self) -> int:
        """Of shards."""
        return -(-self.rows // self.size)

    def finished(self) -> set[int]:
        """The shards that need not be worked on."""
        return {number for number, failed in self._there() if not failed}

    def failed(self) -> set[int]:
        """Those of the others that are there, but for some rows."""
        return {number for number, failed in self._there() if failed} - self.finished()

    def _there(self) -> Iterator[tuple[int, bool]]:
        for name in self.folder.names(SHARDS):
            found = _NAME.fullmatch(name)
            if found:
                yield int(found[1]), bool(found[2])

    def units(self) -> list[list[Shard]]:
        """What is to be done, in runs that one task reads; a packed file is read by one, from its beginning."""
        done = self.finished()
        pending = [shard for shard in shards(self.sources, self.size) if shard.number not in done]
        length = max(1, -(-len(pending) // MOST_UNITS))
        units: list[list[Shard]] = []
        for shard in pending:
            packed = any(self.sources[piece.source].packed for piece in shard.pieces)
            if units and (packed or len(units[-1]) < length) and self._together(units[-1][-1], shard):
                units[-1].append(shard)
            else:
                units.append([shard])
        return units

    def _together(self, one: Shard, other: Shard) -> bool:
        return one.pieces[-1].source == other.pieces[0].source

    def recounted(self, number: int) -> Note:
        """What a finished shard says itself: whoever noted it may have been killed before. What was not kept was ok."""
        found = self.shape.statuses(self.folder.read(shard_name(number, self.shape.format)))
        rows = min(self.size, self.rows - number * self.size)
        states = Counter({"ok": rows - len(found)}) + Counter(found.values())
        return Note(number, rows, len(found), states=dict(states))

    def shards_in_order(self) -> Iterator[bytes]:
        """What every shard holds, for `merge`."""
        finished, failed = self.finished(), self.failed()
        missing = self.count - len(finished | failed)
        if missing:
            raise BesagError(
                f"{quoted(self.folder.path)} is not finished: {missing:,} of {self.count:,} shards are missing; go on "
                "with the command that began it and --resume"
            )
        for number in range(self.count):
            yield self.folder.read(shard_name(number, self.shape.format, number not in finished))


# ---- beginning and going on


def begin(
    paths: Sequence[str],
    folder: str,
    verb: Verb,
    asked: Mapping[str, Any],
    *,
    layout: Layout,
    format: Format,
    block: int,
    size: int | None = None,
    resume: bool = False,
    force: bool = False,
    go_on: str = "--resume",
    only_look: bool = False,
) -> Job:
    """A new job, or one that goes on; `asked` is what besides the inputs makes two jobs the same.

    `only_look` writes nothing.
    """
    size = _whole_blocks(size, block)
    place = Folder(folder)
    if not place.remote and os.path.exists(folder) and not os.path.isdir(folder):
        raise BesagError(f"--output {quoted(folder)} is a file: the shards of a job stand in a folder")
    there = not only_look and place.has(MANIFEST)
    if there and not (resume or force):
        raise BesagError(f"{quoted(folder)} holds a job already: go on with {go_on}, or say --force to begin anew")
    known = {**asked, "format": format, "shard_rows": size, "block": block, "layout": list(layout)}
    if there and resume:
        return _gone_on(place, known, paths)
    sources: list[Source] = []
    for path in paths:
        before = sum(source.rows for source in sources)
        sources.append(look(path, layout.format, layout.header, size, before))
    layouts = [settled(layout, source) for source in sources]
    firsts = [first_record(source, own) for source, own in zip(sources, layouts, strict=True)]
    shape = Shape(format, (*verb.added, *firsts[0].others))
    fingerprint = {**known, "inputs": [source.fingerprint for source in sources]}
    job = Job(place, json.loads(json.dumps(fingerprint)), sources, layouts, shape, size, block)
    if only_look:
        return job
    if there:
        _clear(place)
    place.make(SHARDS)
    _save(job)
    return job


def _whole_blocks(size: int | None, block: int) -> int:
    if size is None:
        return max(block, SHARD)
    if size < 1 or size % block:
        raise BesagError(f"--shard-rows {size}: a shard is a whole number of blocks, each of {block} rows")
    return size


def _gone_on(folder: Folder, known: Mapping[str, Any], paths: Sequence[str]) -> Job:
    job = opened(folder.path)
    names = [path if is_url(path) else os.path.basename(path) for path in paths]
    inputs = [
        {"file": name, "bytes": size, "ends": digest}
        for name, (size, digest) in zip(names, map(identity, paths), strict=True)
    ]
    now = json.loads(json.dumps({**known, "inputs": inputs}))
    differ = differences(_flat(job.fingerprint), _flat(now))
    if differ:
        raise BesagError(
            f"{quoted(folder.path)} was begun with other settings: {'; '.join(differ)}. Go on with the same ones, or "
            "say --force to begin anew"
        )
    sources = [source._replace(path=path) for source, path in zip(job.sources, paths, strict=True)]
    return Job(folder, job.fingerprint, sources, job.layouts, job.shape, job.size, job.block)


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Settings within settings by one name: inputs.1.bytes."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            value = {str(place): one for place, one in enumerate(value, 1)}
        deeper = isinstance(value, dict) and value  # an empty one is a value: {"pll": {}} is not {"unmasked": {}}
        found.update(_flat(value, f"{before}{name}.") if deeper else {f"{before}{name}": value})
    return found


def _save(job: Job) -> None:
    content = {
        "kind": KIND, "fingerprint": job.fingerprint, "size": job.size, "block": job.block, "shape": list(job.shape),
        "sources": [list(source) for source in job.sources], "layouts": [list(layout) for layout in job.layouts],
    }  # fmt: skip
    job.folder.write(MANIFEST, json.dumps(content).encode("ascii"))


def opened(folder: str) -> Job:
    """The job whose folder this is."""
    place = Folder(folder)
    if not place.has(MANIFEST):
        raise BesagError(f"{quoted(folder)} is no folder of a job: there is no {MANIFEST} in it")
    try:
        said = json.loads(place.read(MANIFEST))
        if said["kind"] != KIND:
            raise ValueError("it is of another kind")
        sources = [
            Source(*one)._replace(marks=[Place(*mark) for mark in Source(*one).marks]) for one in said["sources"]
        ]
        format, others = said["shape"]
        shape = Shape(format, tuple(others))
        layouts = [Layout(*one) for one in said["layouts"]]
        return Job(place, said["fingerprint"], sources, layouts, shape, said["size"], said["block"])
    except (ValueError, KeyError, TypeError) as failure:
        raise BesagError(f"{place.at(MANIFEST)!r} cannot be read ({failure}): say --force to begin anew") from failure


def _clear(folder: Folder) -> None:
    """Remove what an earlier job has written, and nothing else; the manifest first, so that no half of it is left."""
    folder.remove(MANIFEST)
    folder.remove(Journal.NAME)
    for name in folder.names(SHARDS):
        if _NAME.fullmatch(name) or name.endswith(".tries"):
            folder.remove(f"{SHARDS}/{name}")


def claimed(folder: str) -> Claim | None:
    """The folder, for this process alone; behind a URL there are no locks."""
    if is_url(folder):
        return None
    Folder(folder).make()
    return Claim(folder)


def running(folder: str) -> bool:
    """Does another process work on it? Behind a URL nobody can tell."""
    if is_url(folder):
        return False
    try:
        Claim(folder).release()
    except BesagError:
        return True
    return False
