"""`besag score --resume`: a run that was killed ends as if nothing had happened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, put

from besag.files import progress
from besag.files.progress import Resumable

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # a run that is killed here closes nothing

LINES = ["It rained.", "", "The cats sleep by the door.", "She left.", "Nobody answered him.", "Why?", "They ran."]
FORMATS = ["tsv", "csv", "jsonl", "parquet"]


class Killed(BaseException):
    """Stands for a process that is gone."""


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(progress.BLOCK, "cpu", 2)
    return put(tmp_path / "corpus.tsv", "id\ttext\n" + "".join(f"{at}\t{text}\n" for at, text in enumerate(LINES)))


def interrupt(run: Run, *arguments: object, after: int) -> None:
    """A run that is gone after so many rows, without closing anything."""
    with pytest.MonkeyPatch.context() as patch:
        whole, rows = Resumable.write, iter(range(after))

        def write(self: Resumable, row: Any, others: Any) -> None:
            if next(rows, None) is None:
                self.out.flush()
                raise Killed
            whole(self, row, others)

        patch.setattr(Resumable, "write", write)
        patch.setattr(Resumable, "close", lambda self: None)
        with pytest.raises(Killed):
            run("score", *arguments)


@pytest.mark.parametrize("format", FORMATS)
def test_it_ends_with_the_same_bytes_and_words(run: Run, corpus: Path, tmp_path: Path, format: str) -> None:
    options = [corpus, "--summary", "--method", "pll", "--method", "unmasked"]
    straight = run("score", *options, "-o", tmp_path / f"straight.{format}")
    assert straight.exit_code == 3
    again = [*options, "-o", tmp_path / f"out.{format}"]
    interrupt(run, *again, after=5 * (2 if format == "jsonl" else 1))
    refused = run("score", *again)
    assert refused.exit_code == 2
    assert "is not finished: go on with besag" in refused.stderr
    resumed = run("score", *again, "--resume")
    assert (resumed.exit_code, resumed.stderr) == (3, straight.stderr)  # the empty row and the sums of both runs
    assert (tmp_path / f"out.{format}").read_bytes() == (tmp_path / f"straight.{format}").read_bytes()
    assert len(os.listdir(tmp_path)) == 3


def test_rows_that_are_done_are_not_scored_again(run: Run, corpus: Path, tmp_path: Path) -> None:
    seen: list[str] = []
    out = tmp_path / "out.tsv"
    interrupt(run, corpus, "-o", out, after=5)
    with pytest.MonkeyPatch.context() as patch:
        write = Resumable.write

        def noted(self: Resumable, row: Any, others: Any) -> None:
            seen.append(row["text"])
            write(self, row, others)

        patch.setattr(Resumable, "write", noted)
        assert run("score", corpus, "-o", out, "--resume").exit_code == 3
    assert seen == LINES[4:]


def test_other_settings_and_other_texts_are_refused(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    interrupt(run, corpus, "-o", out, after=5)
    result = run("score", corpus, "-o", out, "--resume", "--method", "chain", "--base", "2")
    assert result.exit_code == 2
    assert "other settings: method is ['chain'], and was not set; base is '2', and was 'e'. Go on" in result.stderr
    corpus.write_text(corpus.read_text().replace("Why?", "Who?"))
    assert "inputs is [{'file': 'corpus.tsv'" in run("score", corpus, "-o", out, "--resume").stderr
    assert run("score", corpus, "-o", out, "--force").exit_code == 3
    assert sorted(os.listdir(tmp_path)) == ["corpus.tsv", "out.tsv"]


def test_what_cannot_be_gone_on_with(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    assert "--resume goes on with a file" in run("score", corpus, "--resume").stderr
    assert "stdin or a pipe cannot be" in run("score", "-", "-o", out, "--resume", stdin="a\n").stderr
    assert run("score", "-", "-o", out, stdin="One.\nTwo.\nThree.\n").exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["corpus.tsv", "out.tsv"]


def test_a_run_that_was_killed_at_its_very_end(run: Run, corpus: Path, tmp_path: Path) -> None:
    """All blocks are done, and the note is still there."""
    out = tmp_path / "out.tsv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Resumable, "finish", lambda self: None)
        assert run("score", corpus, "-o", out, "--limit", "6").exit_code == 3
    before = out.read_bytes()
    assert run("score", corpus, "-o", out, "--limit", "6", "--resume").exit_code == 3
    assert out.read_bytes() == before
    assert not (tmp_path / "out.tsv.progress").exists()
