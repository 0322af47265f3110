from __future__ import annotations

import errno
import os
import signal
import socket
from pathlib import Path

import pytest

from besag.errors import BesagError, quoted
from besag.files import claim
from besag.files.claim import Claim, lock_of, released

ME = f"process {os.getpid()} on {socket.gethostname()}"


@pytest.mark.parametrize("kind", ["file", "not there yet", "folder", "a very long name"])
def test_the_second_is_refused_and_told_who_has_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("n" * 254 if kind == "a very long name" else "out")
    if kind == "file":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    with Claim(path):
        with pytest.raises(BesagError) as refused:
            Claim(path, "choose another --record")
        told = f"is being written by another process ({ME}): wait for it, or choose another --record"
        assert str(refused.value) == f"{quoted(os.fspath(path))} {told}"
        Claim(tmp_path / "other").release()
    Claim(path).release()


def test_a_file_that_was_let_go_has_nothing_beside_it(tmp_path: Path) -> None:
    claimed = Claim(tmp_path / "out.tsv")
    assert os.listdir(tmp_path) == [".out.tsv.lock"]
    claimed.release()
    claimed.release()
    assert os.listdir(tmp_path) == []


def test_a_link_and_what_it_leads_to_are_one(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with Claim(tmp_path / "link"), pytest.raises(BesagError, match="is being written by another process"):
        Claim(tmp_path / "out")


def test_what_was_claimed_inside_is_released(tmp_path: Path) -> None:
    with released():
        Claim(tmp_path / "out")
        assert os.listdir(tmp_path) == [".out.lock"]
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="POSIX")
def test_a_device_is_nobodys() -> None:
    with Claim("/dev/null"), Claim("/dev/null"):
        assert not lock_of(Path("/dev/null")).exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_a_killed_process_has_let_go_and_its_children_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out"
    ready, told = os.pipe()
    child = os.fork()
    if not child:
        Claim(path)
        os.write(told, os.getpid().to_bytes(8, "big"))
        grandchild = os.fork()  # as a worker that loads data, which outlives its parent for a while
        if not grandchild:
            os.write(told, os.getpid().to_bytes(8, "big"))
        signal.pause()
        os._exit(0)
    pids = [int.from_bytes(os.read(ready, 8), "big") for _ in range(2)]
    try:
        with pytest.raises(BesagError, match=f"another process .process {child} on "):
            Claim(path)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert lock_of(path).exists()
        Claim(path).release()
        assert os.listdir(tmp_path) == []
    finally:
        os.kill(max(pids), signal.SIGKILL)


def test_a_lock_file_that_is_removed_while_it_is_taken_is_not_held_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, first = claim._locked, iter([True])

    def removed(handle: int, lock: Path) -> bool:
        if next(first, False):
            lock.unlink()  # by its last holder, just now
        return locked(handle, lock)

    monkeypatch.setattr(claim, "_locked", removed)
    with Claim(tmp_path / "out"):
        assert lock_of(tmp_path / "out").read_text() == f"{ME}\n"


@pytest.mark.skipif(os.name != "posix", reason="flock")
def test_a_disk_without_locks_lets_everybody_in_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unknown)
    with pytest.warns(UserWarning, match=r"knows no locks \(No locks available\)"):
        first = Claim(tmp_path / "out")
    with pytest.warns(UserWarning, match="see to it that no other process"):
        second = Claim(tmp_path / "out")  # nobody can be kept out
    second.release()
    first.release()
    assert os.listdir(tmp_path) == []


def test_garbage_in_a_lock_file_is_not_repeated(tmp_path: Path) -> None:
    with Claim(tmp_path / "out"):
        lock_of(tmp_path / "out").write_bytes(b"\xff\x1b[31m")
        with pytest.raises(BesagError, match="by another process: wait for it"):
            Claim(tmp_path / "out")
