"""A job in this process, with a tiny network: what Ray would do, without Ray."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests import networks

from besag.bulk.index import Shard, Source, look, shards
from besag.bulk.reading import Read, Reader, settled
from besag.bulk.working import Note, Work, Worker
from besag.files.inputs import Layout

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "one", "red", "dog", "ran", "by"]


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny BERT."""
    folder = tmp_path_factory.mktemp("bulk") / "bert"
    networks.tiny("bert").eval().save_pretrained(folder)
    networks.vocabulary("bert").tokenizer.save_pretrained(folder)
    return folder


def sentences(count: int, longest: int = 7, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(2, longest))) for _ in range(count)]


def here(reader: Reader, units: Sequence[Sequence[Shard]], work: Work) -> Iterator[Note]:
    """A pool that is this process."""
    worker = Worker(work)
    for unit in units:
        for read in reader.read(unit):
            yield worker(read)


def looked(paths: Sequence[Path], layout: Layout, size: int) -> list[Source]:
    sources: list[Source] = []
    for path in paths:
        before = sum(source.rows for source in sources)
        sources.append(look(str(path), layout.format, layout.header, size, before))
    return sources


def in_shards(paths: Sequence[Path], size: int, layout: Layout | None = None) -> list[Read]:
    """All rows of files, each shard read by itself, last shard first."""
    layout = layout or Layout()
    sources = looked(paths, layout, size)
    reader = Reader(sources, [settled(layout, source) for source in sources])
    return [read for shard in reversed(shards(sources, size)) for read in reader.read([shard])][::-1]
