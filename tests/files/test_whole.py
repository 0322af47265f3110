"""Whole files: the old one, the new one, and never half of either."""

from __future__ import annotations

import itertools
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from besag.errors import BesagError
from besag.files.whole import descriptor, held_back, is_stream, whole, write_arrays, write_whole


def test_the_file_is_there_when_all_of_it_is(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_text("old")
    with whole(path) as draft:
        assert (draft.parent, draft.suffix) == (tmp_path, ".png")
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["picture.png"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole(path) as draft:  # noqa: PT012
        draft.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_draft_is_written_as_it_is(tmp_path: Path) -> None:
    with whole(tmp_path / "a.txt") as draft:
        with whole(draft) as same:
            assert same == draft
            same.write_text("new")
        assert os.listdir(tmp_path) == [draft.name]
    assert (tmp_path / "a.txt").read_text() == "new"


def test_rights_and_links_stay(tmp_path: Path) -> None:
    write_whole(tmp_path / "real.txt", "one")
    (tmp_path / "real.txt").chmod(0o640)
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_whole(tmp_path / "link.txt", "two\r\n")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"two\r\n"
    assert stat.S_IMODE((tmp_path / "real.txt").stat().st_mode) == 0o640


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "told")
    assert os.read(reader, 10) == b"told"
    os.close(reader)


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(BesagError, match=r"no such folder: .*no', to write 'a\.txt' in"):
        write_whole(tmp_path / "no" / "a.txt", "x")
    with pytest.raises(BesagError, match="is a folder, not a file"):
        write_whole(tmp_path, "x")
    with pytest.raises(BesagError, match=r"cannot write '/proc/besag\.txt'"):
        write_whole("/proc/besag.txt", "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="there are no such devices")
def test_devices_and_pipes_are_written_as_they_are(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (os.devnull, tmp_path / "pipe", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/2"):
        assert is_stream(path)
        with whole(path) as draft:
            assert draft == Path(path)
    assert [descriptor(path) for path in ("/dev/stdout", "/dev/stderr", "/dev/fd/1")] == [1, 2, 1]
    (tmp_path / "a.txt").touch()
    for path in (tmp_path, tmp_path / "a.txt", tmp_path / "missing", "/dev/fd/999999", "/dev/fd/x"):
        assert not is_stream(path)


# ---- interrupted

WRITES = {"open", "write", "seek", "tell", "flush", "close", "writelines", "truncate"}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a file that was interrupted as it opened has no owner
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_at_any_write_call_of_arrays_is_an_interruption(tmp_path: Path, number: int) -> None:
    """Raised before and after each call that writes, one after the other: KeyboardInterrupt, and a whole file."""
    path, arrays = tmp_path / "state", {"ids": np.arange(12).reshape(3, 4), ".step": np.asarray(7)}

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before, old = signal.signal(number, interrupt), path
    try:
        for at in itertools.count():
            write_arrays(path, {"version": at}, arrays)
            left = at

            def counting(frame: Any, event: str, what: Any) -> None:
                nonlocal left
                name = frame.f_code.co_name if what is None or event in ("call", "return") else what.__name__
                if name in WRITES:
                    left -= 1
                    if left == -1:
                        signal.raise_signal(number)

            interrupted = False
            sys.setprofile(counting)
            try:
                write_arrays(path, {"version": -1}, arrays)
            except KeyboardInterrupt:
                interrupted = True
            finally:
                sys.setprofile(None)
            with np.load(old, allow_pickle=False) as found:
                assert f'"version": {at}' in str(found["about"]) or '"version": -1' in str(found["about"])
                assert np.array_equal(found["ids"], arrays["ids"])
            assert os.listdir(tmp_path) == ["state"]
            if not interrupted:
                break
    finally:
        signal.signal(number, before)
    assert left >= 0  # there were no more calls
    assert at > 10


def test_one_interruption_is_held_back_and_a_second_is_not() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), held_back():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        done.append("the rest")
    assert done == ["the rest"]
    with pytest.raises(KeyboardInterrupt), held_back():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("never")
    assert done == ["the rest"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
