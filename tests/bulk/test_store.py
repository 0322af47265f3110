"""A folder on a disk and one behind a URL are used alike."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from tests.files.reading import put

from besag.bulk.store import Folder, go_to, is_url, opened, size_of
from besag.errors import BesagError


@pytest.mark.parametrize("kind", ["disk", "url"])
def test_a_folder(tmp_path: Path, kind: str) -> None:
    folder = Folder(str(tmp_path / "job") if kind == "disk" else f"file://{tmp_path}/job")
    folder.make("shards")
    assert folder.names("shards") == folder.names("nothing") == set()
    folder.write("shards/a", b"one")
    folder.write("shards/a", b"two")
    assert folder.has("shards/a")
    assert not folder.has("shards/b")
    assert folder.read("shards/a") == b"two"
    assert folder.names("shards") == {"a"}
    folder.remove("shards/a")
    folder.remove("shards/a")
    assert folder.names("shards") == set()


def test_a_url_that_is_read(tmp_path: Path) -> None:
    path = put(tmp_path / "a.txt", "one\ntwo\n")
    url = f"file://{path}"
    assert is_url(url)
    assert not is_url(str(path))
    assert size_of(url) == size_of(str(path)) == 8
    with opened(url) as file:
        assert file.read() == b"one\ntwo\n"
    with pytest.raises(BesagError, match=r"cannot read.*nothing\.txt"):
        opened(f"file://{tmp_path}/nothing.txt")
    with pytest.raises(BesagError, match="nosuch"):
        size_of("nosuch://a/b")


def test_forward_in_what_cannot_be_sought_in() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    file = Pipe(b"0123456789")
    go_to(file, 4, 0)
    assert file.read(1) == b"4"
    go_to(file, 7, 5)
    assert file.read() == b"789"


def test_a_folder_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match="is no file"):
        opened(str(tmp_path))
    with pytest.raises(BesagError, match="no such file"):
        size_of(str(tmp_path / "x.txt"))
