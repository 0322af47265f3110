"""What goes wrong with a row is that row's affair; what goes wrong with everything stops the job."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from besag.bulk.keeping import Keep
from besag.bulk.reading import Read
from besag.bulk.shapes import Shape
from besag.bulk.verbs import Score
from besag.bulk.working import MOST_TRIES, Note, Work, Worker
from besag.errors import BesagError
from besag.files.inputs import Record


@dataclass(frozen=True)
class Length:
    """A verb that counts letters, fails at "bad", and kills everything at "worse"."""

    number: str = "letters"
    added: tuple[str, ...] = ()
    trial: str = "abc"
    loads: bool = True

    def open(self) -> Any:
        if not self.loads:
            raise BesagError("'x' has no weights")
        return SimpleNamespace(lm=SimpleNamespace(engine=SimpleNamespace(tokens_run=0)), rows=self.rows)

    def rows(self, records: Any) -> Iterator[tuple[Record, list[dict[str, object]]]]:
        for record in records:
            if record is None:
                continue
            if record.text == "bad":
                raise RuntimeError("CUDA out of patience")
            status = "ok" if record.text else "empty"
            yield record, [{"row": record.number, "text": record.text, "letters": len(record.text), "status": status}]


def read(*texts: str, number: int = 0) -> Read:
    return Read(number, [Record(at, f"line {at}", text, {}) for at, text in enumerate(texts, 1)])


@pytest.fixture
def work(tmp_path: Path) -> Work:
    (tmp_path / "shards").mkdir()
    return Work(Length(), Shape("tsv"), str(tmp_path), 2)


def lines(work: Work, name: str) -> list[str]:
    return (Path(work.folder) / "shards" / name).read_text().splitlines()


def test_a_shard(work: Work) -> None:
    note = Worker(work)(read("a", "", "ccc"))
    assert (note.rows, note.kept, note.states, note.failed, note.stop) == (3, 3, {"ok": 2, "empty": 1}, [], "")
    assert lines(work, "000000.tsv") == ["row\ttext\tletters\tstatus", "1\ta\t1\tok", "2\t\t0\tempty", "3\tccc\t3\tok"]
    assert Note.of(note.line()) == note


def test_a_row_that_fails_costs_itself(work: Work) -> None:
    note = Worker(work)(read("a", "bad", "ccc"))
    assert note.failed == [[2, "CUDA out of patience"]]
    assert lines(work, "000000.failed.tsv")[1:] == ["1\ta\t1\tok", "2\tbad\t0\tfailed", "3\tccc\t3\tok"]
    Worker(work)(read("a", "good", "ccc"))  # when it is tried again
    assert [path.name for path in (Path(work.folder) / "shards").iterdir()] == ["000000.tsv"]


def test_a_row_that_could_not_be_read(work: Work) -> None:
    found = read("a", "", "ccc")
    found.problems[2] = "line 2 is not JSON"
    assert Worker(work)(found).states == {"ok": 2, "unreadable": 1}


def test_what_is_wrong_with_every_row_stops_the_job(work: Work) -> None:
    note = Worker(work)(read("bad", "bad"))
    assert note.stop == "every row fails: CUDA out of patience"
    assert not list((Path(work.folder) / "shards").glob("*.tsv"))


def test_a_model_that_cannot_be_loaded(work: Work, tmp_path: Path) -> None:
    worker = Worker(Work(Length(loads=False), work.shape, work.folder, 2))
    assert [worker(read("a")).stop, worker(read("a")).stop] == ["'x' has no weights"] * 2
    missing = Worker(Work(Score({"model": str(tmp_path / "nothing")}), work.shape, work.folder, 2))
    assert "there is no folder" in missing(read("a")).stop


def test_a_condition_on_rows(work: Work) -> None:
    keep = Keep("score > 1")
    note = Worker(Work(work.verb, work.shape, work.folder, 2, keep))(read("a", "", "ccc"))
    assert (note.rows, note.kept) == (3, 2)  # the empty one was not judged
    assert lines(work, "000000.tsv")[1:] == ["2\t\t0\tempty", "3\tccc\t3\tok"]
    nothing = Worker(Work(work.verb, work.shape, work.folder, 2, keep))(read("a", number=1))
    assert nothing.kept == 0
    assert lines(work, "000001.tsv") == ["row\ttext\tletters\tstatus"]
    wrong = Worker(Work(work.verb, work.shape, work.folder, 2, Keep("letter > 1")))(read("a"))
    assert "Did you mean 'letters'" in wrong.stop


def test_a_full_disk_stops_the_job_and_leaves_nothing_half_written(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    Worker(work)(read("a"))

    def full(self: Path, content: bytes) -> None:
        with open(self, "wb") as file:
            file.write(content[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    note = Worker(work)(read("b", number=1))
    assert "No space left on device" in note.stop
    assert [path.name for path in (Path(work.folder) / "shards").iterdir()] == ["000000.tsv"]


def test_a_shard_that_kills_its_process_is_given_up(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("besag.bulk.working.Hand.results", kill)
        for _ in range(MOST_TRIES):
            with pytest.raises(Killed):
                Worker(work)(read("a", "b"))
    note = Worker(work)(read("a", "b"))
    assert note.states == {"failed": 2}
    assert note.failed[0] == [1, f"the process died {MOST_TRIES} times"]
    assert Worker(work)(read("a", "b")).states == {"ok": 2}  # a resumed job begins to count anew


def test_a_folder_that_is_not_everywhere(work: Work, tmp_path: Path) -> None:
    worker = Worker(Work(work.verb, work.shape, str(tmp_path / "elsewhere"), 2))
    assert "is not there on every machine" in worker(read("a")).stop
