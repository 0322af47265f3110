"""A folder is there whole or not at all, and others may read what is in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from besag.files.folders import whole_folder


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_a_new_folder_takes_the_place_of_the_old_one_as_a_whole(tmp_path: Path) -> None:
    for content in ("old", "new"):
        with whole_folder(tmp_path / "model") as draft:
            (draft / content).write_text(content)
            assert names(tmp_path / "model") == ["old"] if content == "new" else not (tmp_path / "model").exists()
    assert names(tmp_path / "model") == ["new"]
    assert names(tmp_path) == ["model"]


def test_what_fails_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "old").touch()

    def fill() -> None:
        with whole_folder(tmp_path / "model") as draft:
            (draft / "new").touch()
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fill()
    assert names(tmp_path) == ["model"]
    assert names(tmp_path / "model") == ["old"]


def test_what_a_killed_process_left_is_cleared(tmp_path: Path) -> None:
    for left in (".model.unfinished", ".model.old"):
        (tmp_path / left).mkdir()
        (tmp_path / left / "torn").touch()
    with whole_folder(tmp_path / "model") as draft:
        assert names(draft) == []
    assert names(tmp_path) == ["model"]


class Killed(BaseException):
    """The process ends here: nothing after it is done, not even cleaning up."""


def kill_at(patched: pytest.MonkeyPatch, number: int) -> None:
    """End the process just before the `number`-th renaming or removal of a folder."""
    left = iter(range(number))

    def ending(call: Any) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise Killed
            return call(*args, **options)

        return counted

    patched.setattr(Path, "rename", ending(Path.rename))
    patched.setattr(shutil, "rmtree", ending(shutil.rmtree))


def written(folder: Path, content: str, fails: bool = False) -> None:
    with whole_folder(folder) as draft:
        (draft / "content").write_text(content)
        if fails:
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("number", range(5))  # two removals, two renamings, a removal
def test_killed_before_any_renaming_a_finished_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = tmp_path / "model"
    written(folder, "old")
    with monkeypatch.context() as patched:
        kill_at(patched, number)
        with pytest.raises(Killed):
            written(folder, "new")
    there = os.path.exists(folder)
    with pytest.raises(OSError, match="No space"):
        written(folder, "newest", fails=True)  # the next call finds what is finished, and fails itself
    assert (folder / "content").read_text() == ("new" if number >= 3 else "old")
    assert there == (number != 3)
    written(folder, "newest")
    assert (folder / "content").read_text() == "newest"
    assert names(tmp_path) == ["model"]


def test_a_draft_that_was_finished_when_its_process_was_killed_is_not_lost(tmp_path: Path) -> None:
    """Killed between the two renames: the old folder is aside, and the draft not yet in its place."""
    for left, content in ((".model.unfinished", "new"), (".model.old", "old")):
        (tmp_path / left).mkdir()
        (tmp_path / left / content).touch()

    def fill() -> None:
        with whole_folder(tmp_path / "model"):
            assert names(tmp_path / "model") == ["new"]
            raise OSError(28, "full")

    with pytest.raises(OSError, match="full"):
        fill()
    assert names(tmp_path) == ["model"]
    assert names(tmp_path / "model") == ["new"]


@pytest.mark.parametrize("trip", [KeyboardInterrupt, OSError])
def test_what_comes_between_the_two_renames_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trip: type[BaseException]
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "old").touch()
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if self.name.endswith(".unfinished"):
            raise trip
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(trip), whole_folder(tmp_path / "model") as draft:
        (draft / "new").touch()
    assert names(tmp_path) == ["model"]
    assert names(tmp_path / "model") == ["old"]


FILL = """
import sys
from besag.errors import BesagError
from besag.files.folders import whole_folder
try:
    with whole_folder(sys.argv[1]):
        print("filled")
except BesagError as problem:
    print(problem)
"""


@pytest.mark.skipif(os.name != "posix", reason="flock")
def test_a_second_process_leaves_the_draft_of_the_first_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path / "model")]
    with whole_folder(tmp_path / "model") as draft:
        (draft / "mine").touch()
        said = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
        assert names(draft) == ["mine"]
    assert repr(str(tmp_path / "model")) in said
    assert "another process" in said
    assert names(tmp_path / "model") == ["mine"]
    assert subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout == "filled\n"
    assert names(tmp_path) == ["model"]


def test_files_for_the_owner_alone_become_as_others_are(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    with whole_folder(tmp_path / "model") as draft:
        (draft / "inner").mkdir()
        for file in (draft / "weights", draft / "inner" / "weights"):
            file.touch(mode=0o600)
    modes = {file.stat().st_mode for file in (tmp_path / "model").rglob("weights")}
    assert modes == {usual.stat().st_mode}
