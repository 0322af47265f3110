"""A job from its first missing shard to its last, with a note of each. Whoever works on shards is handed in."""

from __future__ import annotations

from collections.abc import Iterator

from besag.bulk.job import Job, Pool
from besag.bulk.journal import Journal
from besag.bulk.reading import Reader
from besag.bulk.working import Note, Work
from besag.errors import BesagError


def run(job: Job, work: Work, pool: Pool, journal: Journal) -> Iterator[Note]:
    """Each note as its shard is done; what stops the job is raised, and what is finished stays."""
    for number in sorted(job.finished() - journal.totals.notes.keys()):
        journal.totals.add(job.recounted(number))
    units = job.units()
    if not units:
        return
    for note in pool(Reader(job.sources, job.layouts), units, work):
        if note.stop:
            raise BesagError(note.stop)
        journal.add(note)
        yield note
