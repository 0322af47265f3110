from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.training import a_run

from besag.errors import BesagError
from besag.training.recipe import to_toml
from besag.training.run import train
from besag.training.run.claim import begun, take

ONE = {"schedule": {"steps": 1}}


def test_a_run_holds_its_folder_and_lets_it_go(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with take(folder), pytest.raises(BesagError, match=r"is being written by .*: wait for it, or choose another run"):
        train(a_run.small(folder, ONE), quiet=True)
    assert not begun(folder)
    assert train(a_run.small(folder, ONE), quiet=True).finished
    take(folder).release()


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
            take(folder)
