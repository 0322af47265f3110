"""Packed files, by their ending."""

import bz2
import gzip
import lzma

import pytest

from besag.files.packed import BROKEN, unpacked


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.txt", bytes), ("a.gz", gzip.compress), ("a.XZ", lzma.compress), ("a.bz2", bz2.compress), ("gz", bytes)],
)
def test_the_ending_says_whether_a_file_is_unpacked(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(b"one\ntwo\n"))
    with unpacked(str(path)) as file:
        assert list(file) == [b"one\n", b"two\n"]


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.xz", lzma.compress), ("a.bz2", bz2.compress)])
@pytest.mark.parametrize("damage", [lambda raw: raw[:-9], lambda raw: b"no such thing"])
def test_what_a_damaged_file_raises_is_known(tmp_path, name, pack, damage):
    path = tmp_path / name
    path.write_bytes(damage(pack(b"one\ntwo\n" * 1000)))
    with pytest.raises(BROKEN), unpacked(str(path)) as file:
        file.read()
