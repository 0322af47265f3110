"""Exactly once, whatever happens: a job that is killed goes on with what is missing."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.bulk.conftest import here, sentences
from tests.bulk.test_working import Length
from tests.files.reading import put

from besag.bulk import job as jobs
from besag.bulk import store
from besag.bulk.job import Job, begin, opened, running
from besag.bulk.journal import Journal, Totals, rate, read
from besag.bulk.running import run
from besag.bulk.working import Note, Work, shard_name
from besag.errors import BesagError
from besag.files.inputs import Layout

VERB = Length()


class Killed(BaseException):
    """Stands for a process that is gone."""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return put(
        tmp_path / "corpus.tsv", "id\ttext\n" + "".join(f"{at}\t{text}\n" for at, text in enumerate(sentences(50)))
    )


def start(corpus: Path, folder: Path | str, format: Any = "tsv", **options: Any) -> Job:
    asked = {"model": "m", **options.pop("asked", {})}
    return begin([str(corpus)], str(folder), VERB, asked, layout=Layout(), format=format, block=2, size=4, **options)


def work_on(job: Job, pool: Any = here) -> list[Note]:
    journal = Journal(job.folder)
    try:
        return list(run(job, Work(VERB, job.shape, job.folder.path, job.block), pool, journal))
    finally:
        journal.close()


def merged(job: Job, path: Path) -> bytes:
    job.shape.merge(job.shards_in_order(), str(path))
    return path.read_bytes()


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("place", ["disk", "url"])
def test_killed_at_any_moment_it_ends_with_the_same_bytes(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, place: str
) -> None:
    straight = start(corpus, tmp_path / "straight", format)
    assert len(work_on(straight)) == straight.count == 13
    expected = merged(straight, tmp_path / f"straight.{format}")
    draw, write = random.Random(format), store.Folder.write
    folder = tmp_path / "job" if place == "disk" else f"file://{tmp_path}/job"
    job = start(corpus, folder, format)
    left, kills = 3, 0

    def killing(self: Any, name: str, content: bytes) -> None:
        """Gone before, after or in the middle of a write."""
        nonlocal left
        left -= 1
        when = draw.choice(["before", "after", "middle"]) if left == 0 else "never"
        if when == "middle" and not self.remote:
            Path(self.at("shards/.000001-draft-00000000.tsv")).write_bytes(content[:5])
        if when in ("before", "middle"):
            raise Killed
        write(self, name, content)
        if when == "after":
            raise Killed

    monkeypatch.setattr(store.Folder, "write", killing)
    while True:
        left = draw.randint(1, 9)
        try:
            work_on(job)
            break
        except Killed:
            kills += 1
        monkeypatch.setattr(store.Folder, "write", write)
        job = start(corpus, folder, format, resume=True)
        monkeypatch.setattr(store.Folder, "write", killing)
    monkeypatch.setattr(store.Folder, "write", write)
    assert kills > 1
    assert merged(job, tmp_path / f"merged.{format}") == expected


def test_a_second_run_does_what_is_missing_and_no_more(corpus: Path, tmp_path: Path) -> None:
    job = start(corpus, tmp_path / "job")
    work_on(job)
    for number in (3, 7):
        job.folder.remove(shard_name(number, "tsv"))
    with pytest.raises(BesagError, match="2 of 13 shards are missing"):
        list(job.shards_in_order())
    assert [note.shard for note in work_on(start(corpus, tmp_path / "job", resume=True))] == [3, 7]
    assert work_on(start(corpus, tmp_path / "job", resume=True)) == []


def test_failed_rows_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.txt", "a\nbad\nc\nd\ne\n")
    job = start(path, tmp_path / "job")
    work_on(job)
    assert (job.finished(), job.failed()) == ({1}, {0})
    assert len(list(job.shards_in_order())) == 2  # nothing is dropped
    monkeypatch.setattr(Length, "rows", lambda self, records: Length.good(self, records), raising=False)
    monkeypatch.setattr(Length, "good", _good, raising=False)
    again = start(path, tmp_path / "job", resume=True)
    assert [note.shard for note in work_on(again)] == [0]
    assert (again.finished(), again.failed()) == ({0, 1}, set())
    notes, _ = read(again.folder)
    assert Totals.of(notes).states["failed"] == 0


def _good(self: Any, records: Any) -> Iterator[Any]:
    for record in records:
        if record is not None:
            yield record, [{"row": record.number, "text": record.text, "letters": 1, "status": "ok"}]


@pytest.mark.parametrize(
    ("change", "said"),
    [({"asked": {"model": "n"}}, "model is 'n', and was 'm'"), ({"format": "csv"}, "format is 'csv', and was 'tsv'")],
)
def test_other_settings_are_refused(corpus: Path, tmp_path: Path, change: Any, said: str) -> None:
    start(corpus, tmp_path / "job")
    with pytest.raises(BesagError, match=f"was begun with other settings: {said}"):
        start(corpus, tmp_path / "job", resume=True, **change)


def test_a_changed_input_is_refused(corpus: Path, tmp_path: Path) -> None:
    start(corpus, tmp_path / "job")
    put(corpus, corpus.read_bytes() + b"50\tone more\n")
    with pytest.raises(BesagError, match=r"inputs\.1\.bytes is \d+, and was \d+; inputs\.1\.ends is"):
        start(corpus, tmp_path / "job", resume=True)


def test_a_folder_with_a_job_is_not_written_over(corpus: Path, tmp_path: Path) -> None:
    work_on(start(corpus, tmp_path / "job"))
    put(tmp_path / "job" / "mine.txt", "mine")
    with pytest.raises(BesagError, match="holds a job already: go on with --resume, or say --force"):
        start(corpus, tmp_path / "job")
    job = start(corpus, tmp_path / "job", force=True)
    assert (job.finished(), (tmp_path / "job" / "mine.txt").exists()) == (set(), True)
    with pytest.raises(BesagError, match="is a file"):
        start(corpus, corpus)
    with pytest.raises(BesagError, match="is no folder of a job"):
        opened(str(tmp_path))
    put(tmp_path / "job" / "manifest.json", "{")
    with pytest.raises(BesagError, match="cannot be read"):
        opened(str(tmp_path / "job"))


def test_shards_are_whole_blocks(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="a whole number of blocks, each of 2 rows"):
        begin([str(corpus)], str(tmp_path / "j"), VERB, {}, layout=Layout(), format="tsv", block=2, size=5)


def test_one_process_at_a_time(corpus: Path, tmp_path: Path) -> None:
    start(corpus, tmp_path / "job")
    assert not running(str(tmp_path / "job"))
    claim = jobs.claimed(str(tmp_path / "job"))
    assert claim is not None
    with pytest.raises(BesagError, match="is being written by another process"):
        jobs.claimed(str(tmp_path / "job"))
    assert running(str(tmp_path / "job"))
    claim.release()


def test_a_torn_journal_goes_on(corpus: Path, tmp_path: Path) -> None:
    job = start(corpus, tmp_path / "job")
    work_on(job)
    path = tmp_path / "job" / Journal.NAME
    path.write_bytes(path.read_bytes()[:-20])
    assert len(read(job.folder)[0]) == 12
    journal = Journal(job.folder)
    journal.add(Note(12, rows=2, states={"ok": 1, "empty": 1}))
    journal.close()
    notes, _ = read(job.folder)
    totals = Totals.of(notes)
    assert (len(notes), totals.rows, totals.unscored()) == (13, 50, {"empty": 1})


def test_shards_whose_note_was_lost_are_counted_from_their_files(corpus: Path, tmp_path: Path) -> None:
    job = start(corpus, tmp_path / "job")
    work_on(job)
    noted = Totals.of(read(job.folder)[0])
    (tmp_path / "job" / Journal.NAME).write_bytes(b"")
    journal = Journal(job.folder)
    assert not list(run(job, Work(VERB, job.shape, job.folder.path, job.block), here, journal))
    assert (journal.totals.rows, journal.totals.kept, journal.totals.states) == (noted.rows, noted.kept, noted.states)


def test_the_rate_is_that_of_late() -> None:
    notes = [Note(number, rows=10, tokens=50, at=float(number)) for number in range(200)]
    assert rate(notes) == (10.0, 50.0)
    assert rate(notes[:1]) is rate([]) is None


def test_packed_files_are_read_by_one_task(corpus: Path, tmp_path: Path) -> None:
    job = start(corpus, tmp_path / "job")
    assert [len(unit) for unit in job.units()] == [1] * 13
    packed = replace(job, sources=[job.sources[0]._replace(path="corpus.tsv.gz")])
    assert [len(unit) for unit in packed.units()] == [13]


def test_ten_thousand_shards_begin_within_five_seconds(tmp_path: Path) -> None:
    path = put(tmp_path / "a.txt", "a\n" * 40_000)
    job = start(path, tmp_path / "job")
    shards = tmp_path / "job" / "shards"
    for number in range(0, 10_000, 2):
        (shards / f"{number:06}.tsv").touch()
    lines = [Note(number, rows=4, tokens=9, states={"ok": 4}).line() for number in range(0, 10_000, 2)]
    put(tmp_path / "job" / Journal.NAME, "\n".join(lines) + "\n")
    began = time.perf_counter()
    job = start(path, tmp_path / "job", resume=True)
    journal = Journal(job.folder)
    with closing(journal):
        first = next(run(job, Work(VERB, job.shape, job.folder.path, job.block), here, journal))
    assert time.perf_counter() - began < 5
    assert first.shard == 1
    assert len(job.units()) <= jobs.MOST_UNITS
    assert json.loads((tmp_path / "job" / "manifest.json").read_text())["size"] == 4
