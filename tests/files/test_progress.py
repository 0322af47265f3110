"""A run that was killed at any moment goes on, and ends with the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import besag
from besag.errors import BesagError
from besag.files.inputs import Record
from besag.files.progress import Resumable, differences, in_blocks

ROWS, BLOCK = 23, 5
SETTINGS = {"seed": 0, "model": "tiny"}
FORMATS = ["tsv", "csv", "jsonl", "table", "parquet"]


def write(format: str, path: str, *, resume: bool = False, killed_at: int | None = None, **settings: Any) -> int:
    """Rows as a command writes them; the row it began with."""
    out = Resumable(format, path, resume=resume, go_on="besag … --resume")
    state = out.begin({**SETTINGS, **settings})
    done = first = 0 if state is None else state["rows"]
    for number in range(done, ROWS):
        others = {"id": number, "note": None if number < 7 else f"tab\t{number}"}
        out.write({"row": number, "text": f"line\n{number}", "score": None if number < 7 else number / 3}, others)
        if number == killed_at:
            out.flush()  # half a block is on disk
            os.kill(os.getpid(), signal.SIGKILL)
        done += 1
        if done % BLOCK == 0:
            out.end_block({"rows": done})
    if killed_at == ROWS:
        out.out.finish()  # everything is there but the note
        os.kill(os.getpid(), signal.SIGKILL)
    out.finish()
    out.close()
    return first


def killed(format: str, path: Path, at: int) -> None:
    source = Path(besag.__file__).parents[1]
    script = (
        f"import sys; sys.path[:0] = [{str(source)!r}, {str(Path(__file__).parents[2])!r}]\n"
        "from tests.files.test_progress import write\n"
        f"write({format!r}, {str(path)!r}, killed_at={at})\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL


def check_killed(folder: Path, format: str, at: int) -> None:
    path, undisturbed = folder / f"out.{format}", folder / f"undisturbed.{format}"
    write(format, str(undisturbed))
    killed(format, path, at)
    assert (folder / f"out.{format}.progress").exists()
    with pytest.raises(BesagError, match=r"is not finished: go on with besag … --resume, or say --force"):
        Resumable(format, str(path), go_on="besag … --resume")
    assert write(format, str(path), resume=True) == at // BLOCK * BLOCK
    assert path.read_bytes() == undisturbed.read_bytes()
    assert sorted(os.listdir(folder)) == [path.name, undisturbed.name]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_killed_in_the_middle(tmp_path: Path) -> None:
    check_killed(tmp_path, "tsv", 13)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("at", [0, 4, 5, 13, 22, ROWS])
@pytest.mark.parametrize("format", FORMATS)
def test_killed_at_any_moment(tmp_path: Path, format: str, at: int) -> None:
    check_killed(tmp_path, format, at)


@pytest.mark.parametrize("format", FORMATS)
def test_an_undisturbed_run_leaves_its_file_alone(tmp_path: Path, format: str) -> None:
    path = tmp_path / "out"
    assert write(format, str(path), resume=True) == 0  # nothing to go on with: it begins
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(BesagError, match="is finished, or was not written by a run that can go on"):
        Resumable(format, str(path), resume=True)
    with pytest.raises(BesagError, match="exists already"):
        Resumable(format, str(path))


def stopped(format: str, path: str) -> None:
    """As after Ctrl-C: closed, not finished."""
    out = Resumable(format, path)
    out.begin(SETTINGS)
    for number in range(7):
        out.write({"row": number, "score": 0.5}, {})
        if (number + 1) % BLOCK == 0:
            out.end_block({"rows": number + 1})
    out.close()


def test_what_was_stopped_can_be_read(tmp_path: Path) -> None:
    stopped("parquet", str(tmp_path / "out.parquet"))
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 7
    stopped("jsonl", str(tmp_path / "out.jsonl"))
    assert [json.loads(line)["row"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == list(range(7))


def test_other_settings_are_refused_with_what_differs(tmp_path: Path) -> None:
    path = str(tmp_path / "out.tsv")
    stopped("tsv", path)
    before = (tmp_path / "out.tsv").read_bytes()
    with pytest.raises(BesagError, match=r"begun with other settings: seed is 1, and was 0; top is 3, and was not set"):
        Resumable("tsv", path, resume=True).begin({**SETTINGS, "seed": 1, "top": 3})
    assert (tmp_path / "out.tsv").read_bytes() == before
    assert differences({"a": [1, 2]}, {"a": [1, 2]}) == []


def test_lost_rows_and_a_broken_note_are_told(tmp_path: Path) -> None:
    path = tmp_path / "out.tsv"
    stopped("tsv", str(path))
    path.write_text("row")
    with pytest.raises(BesagError, match=r"out\.tsv' has lost rows: \d+ bytes of it were done, and there are 3"):
        Resumable("tsv", str(path), resume=True).begin(SETTINGS)
    (tmp_path / "out.tsv.progress").write_text("{")
    with pytest.raises(BesagError, match=r"out\.tsv\.progress', which says how far .* cannot be read"):
        Resumable("tsv", str(path), resume=True).begin(SETTINGS)
    out = Resumable("tsv", str(path), force=True)
    assert out.begin(SETTINGS) is None
    out.write({"row": 1}, {})
    out.finish()
    assert path.read_text() == "row\n1\n"


def test_a_folder_that_cannot_be_written_is_told_at_once() -> None:
    with pytest.raises(BesagError, match=r"cannot write '/proc/out\.tsv"):
        Resumable("tsv", "/proc/out.tsv")  # told before the work, not after it


@pytest.mark.parametrize("format", FORMATS)
def test_every_row_is_on_disk_before_the_note_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    """As after a power cut just before the note goes: what was not synchronised by then may be lost."""
    path, synchronised = tmp_path / "out", dict[int, int]()
    fsync, unlink, seen = os.fsync, os.unlink, list[bool]()

    def noted(handle: int) -> None:
        synchronised[os.fstat(handle).st_ino] = os.fstat(handle).st_size
        fsync(handle)

    def looked(name: str) -> None:
        if name == f"{path}.progress":
            seen.append(synchronised.get(path.stat().st_ino) == path.stat().st_size)
        unlink(name)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "unlink", looked)
    write(format, str(path))
    assert seen == [True]


def test_blocks_are_cut_by_row_number() -> None:
    def records() -> Any:
        for number in range(1, 12):
            yield Record(number, "", str(number), {})
            if number == 3:
                yield None  # the source was idle

    found = [None if record is None else record.number for record in in_blocks(records(), BLOCK)]
    assert found == [1, 2, 3, None, 4, 5, None, 6, 7, 8, 9, 10, None, 11]
