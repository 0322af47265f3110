from __future__ import annotations

from pathlib import Path

import pytest

from besag.errors import BesagError
from besag.training.tokenizer.saving import save_whole


class Tokenizer:
    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails

    def save_pretrained(self, folder: str) -> None:
        Path(folder, "tokenizer.json").write_text("new")
        if self.fails is not None:
            raise self.fails


def test_what_else_is_in_the_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "mine.txt").write_text("mine")
    (tmp_path / "t" / "tokenizer.json").write_text("old")
    save_whole(Tokenizer(), tmp_path / "t", {"note.json": "{}"})
    found = {file.name: file.read_text() for file in (tmp_path / "t").iterdir()}
    assert found == {"mine.txt": "mine", "tokenizer.json": "new", "note.json": "{}"}
    save_whole(Tokenizer(), tmp_path / "some" / "where")
    assert (tmp_path / "some" / "where" / "tokenizer.json").read_text() == "new"


@pytest.mark.parametrize("fails", [OSError(28, "No space left on device"), Exception("No space left on device (28)")])
def test_a_full_disk_leaves_the_old_one_whole(tmp_path: Path, fails: Exception) -> None:
    save_whole(Tokenizer(), tmp_path / "t")
    (tmp_path / "t" / "tokenizer.json").write_text("old")
    with pytest.raises(BesagError, match=r"the tokenizer could not be written to '.*t': No space left on device"):
        save_whole(Tokenizer(fails), tmp_path / "t")
    assert [file.read_text() for file in (tmp_path / "t").iterdir()] == ["old"]
    assert [one.name for one in tmp_path.iterdir()] == ["t"]
