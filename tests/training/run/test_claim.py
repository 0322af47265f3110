from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.training import a_run

from besag.errors import BesagError
from besag.training.recipe import to_toml
from besag.training.run import train
from besag.training.run.claim import Claim, begun

ONE = {"schedule": {"steps": 1}}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_another_process_is_kept_out_until_the_first_ends(tmp_path: Path) -> None:
    said = "import sys; from besag.training.run.claim import *; Claim(Path(sys.argv[1])); print('mine')"

    def other() -> str:
        done = subprocess.run([sys.executable, "-c", said, tmp_path], capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    claim = Claim(tmp_path)
    assert "another process is training in" in other()
    claim.release()
    assert other() == "mine\n"


def test_a_run_holds_its_folder_and_lets_it_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    Claim(folder).release()
    monkeypatch.setattr("besag.training.run.claim._lock", lambda file: False)
    with pytest.raises(BesagError, match="another process is training in"):
        train(a_run.small(folder, ONE), quiet=True)
    assert not begun(folder)


def test_what_could_not_begin_leaves_the_folder_free(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    wrong = a_run.small(folder, ONE)
    wrong = replace(wrong, data=replace(wrong.data, train=(str(tmp_path / "nothing.txt"),)))
    with pytest.raises(BesagError, match="no file fits"):
        train(wrong, quiet=True)
    assert not begun(folder)
    assert train(a_run.small(folder, ONE), quiet=True).finished  # another recipe, the same folder
    assert begun(folder)


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="there is nothing to resume in .*: the run begins"):
        train(a_run.small(tmp_path / "out", ONE), resume=True, quiet=True)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "log.jsonl").write_text('{"step": 1}\n')  # killed before its first checkpoint
    (tmp_path / "torn" / "recipe.toml").write_text(
        to_toml(a_run.small(tmp_path / "torn", ONE), beside=tmp_path / "torn")
    )
    with pytest.warns(UserWarning, match="there is no checkpoint in .* yet: the run begins anew"):
        train(a_run.small(tmp_path / "torn", ONE), resume=True, quiet=True)


@pytest.mark.parametrize("name", ["model/notes.txt", "log.jsonl", "checkpoints/step-00000001/meta.json"])
def test_what_no_run_wrote_is_not_written_over(tmp_path: Path, name: str) -> None:
    file = tmp_path / "out" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    with pytest.raises(BesagError, match=r"but no recipe\.toml that says what of"):
        train(a_run.small(tmp_path / "out", ONE), quiet=True)
    assert file.read_text() == "mine"


def test_the_recipe_of_a_user_is_not_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "recipe.toml").write_text("# mine\n")
    for _ in range(2):  # the first refusal does not make it ours
        with pytest.raises(BesagError, match=r"recipe\.toml' was written by no run, and would be lost"):
            train(a_run.small(folder, ONE), quiet=True)
    assert (folder / "recipe.toml").read_text() == "# mine\n"


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BesagError, match=r"run\.output = .* cannot be written to: "):
            Claim(folder)
