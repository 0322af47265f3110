"""What a job would take, before anything starts: a few rows are worked on here, and the rest is arithmetic.

    seconds = rows / (rate · actors),  cost = hours · actors · price

The rate is that of this machine unless one is given, in rows a second of one actor: a benchmark on the hardware that
will do the work says more than a sample elsewhere. Starting, reading and writing are not in it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from besag.bulk.index import shards
from besag.bulk.job import Job
from besag.bulk.reading import Reader
from besag.bulk.verbs import Verb
from besag.files.inputs import Record

PLACES, EACH = 8, 32  # of the input that are looked at, and rows of each


@dataclass(frozen=True)
class Plan:
    rows: int
    shards: int
    bytes: int
    sampled: int  # rows that were worked on
    tokens: float  # through the network, a row
    rate: float  # rows a second of an actor
    measured: bool
    actors: int
    price: float | None  # an hour of an actor

    @property
    def seconds(self) -> float:
        return self.rows / (self.rate * self.actors)

    @property
    def cost(self) -> float | None:
        return None if self.price is None else self.seconds / 3600 * self.actors * self.price

    def lines(self) -> list[tuple[str, str]]:
        """Name and value, for a reader."""
        whose = f"measured here on {self.sampled} rows" if self.measured else "as given"
        found = [
            ("rows", f"{self.rows:,}"),
            ("shards", f"{self.shards:,}"),
            ("input", f"{self.bytes / 1e6:,.1f} MB"),
            ("tokens", f"{self.tokens * self.rows:,.0f} through the network, {self.tokens:,.1f} a row"),
            ("rate", f"{self.rate:,.1f} rows/s of an actor, {whose}"),
            ("actors", f"{self.actors:,}"),
            ("time", duration(self.seconds)),
        ]
        return found if self.cost is None else [*found, ("cost", f"{self.cost:,.2f}")]


def plan(job: Job, verb: Verb, actors: int, rate: float | None = None, price: float | None = None) -> Plan:
    """Work on rows from all over the input, in this process."""
    sample = _sample(job)
    opened = verb.open()
    list(opened.rows([Record(1, "a first trial", verb.trial, {})]))  # what a first run sets up is no part of the rate
    before, began = opened.lm.engine.tokens_run, time.perf_counter()
    list(opened.rows(sample))
    seconds, tokens = time.perf_counter() - began, opened.lm.engine.tokens_run - before
    return Plan(
        job.rows, job.count, sum(source.bytes for source in job.sources), len(sample), tokens / len(sample),
        rate or len(sample) / max(seconds, 1e-9), rate is None, actors, price,
    )  # fmt: skip


def _sample(job: Job) -> list[Record]:
    every = shards(job.sources, job.size)
    step = -(-len(every) // PLACES)
    reader = Reader(job.sources, job.layouts)
    found: list[Record] = []
    for shard in every[::step]:
        [read] = reader.read([shard])
        found += read.records[:EACH]
    return found


def duration(seconds: float) -> str:
    """2 h 5 min, 3 min 20 s, 4.2 s."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days:,} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
