"""What is written over time, a file or a folder, taken by one process at a time: the second is refused, and told why.

    FOLDER/.lock     in a folder
    .NAME.lock       beside a file NAME

The file that is locked is gone when the claim is let go (that of `besag train` stays, and says whose the folder is).
The lock is the operating system's own, on a file that names its holder: it ends with the process, however that ends, so
a kill leaves nothing that would have to be cleaned up. A lock file that was left behind is free, and taken by the next.
Where the disk knows no locks (some network file systems), everybody is let in, and a warning says so. Knows nothing of
what is written.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from besag.errors import BesagError, quoted

LOCK = ".lock"
LONGEST = 255  # bytes in the name of a file, on about every disk

_inside: ContextVar[list[Claim] | None] = ContextVar("_inside", default=None)
_held: set[Claim] = set()


class Claim:
    """A file or folder that nobody else writes, until `release`; the end of the process releases it, too."""

    def __init__(
        self, path: str | os.PathLike[str], instead: str = "choose another --output", *, stays: bool = False
    ) -> None:
        """`instead`: what whoever is refused can do besides waiting. What is no ordinary file is nobody's."""
        self._handle: int | None = None
        target = Path(os.path.realpath(path))
        if target.exists() and not (target.is_file() or target.is_dir()):
            return
        self._lock, self._stays = lock_of(target), stays
        try:
            self._handle = _taken(self._lock)
        except OSError as problem:
            raise BesagError(f"cannot write {quoted(os.fspath(path))}: {problem.strerror}") from problem
        if self._handle is None:
            raise BesagError(
                f"{quoted(os.fspath(path))} is being written by another process{_holder(self._lock)}: wait for it, or "
                f"{instead}"
            )
        _held.add(self)
        claims = _inside.get()
        if claims is not None:
            claims.append(self)

    def release(self) -> None:
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        _held.discard(self)
        if not self._stays:
            with suppress(OSError):  # Windows removes no file that is open, and leaves this one
                self._lock.unlink()
        os.close(handle)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def forget(self) -> None:
        """In a process that was split off: the lock is its parent's, and must not outlive it here."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def lock_of(path: Path) -> Path:
    """The file that is locked for a file or a folder."""
    if path.is_dir():
        return path / LOCK
    name = f".{path.name}{LOCK}"
    if len(os.fsencode(name)) > LONGEST:
        name = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()}{LOCK}"
    return path.with_name(name)


@contextmanager
def released() -> Iterator[None]:
    """Whatever is claimed inside is free again afterwards, even if it was never closed."""
    claims: list[Claim] = []
    before = _inside.set(claims)
    try:
        yield
    finally:
        _inside.reset(before)
        for claim in claims:
            claim.release()


def _taken(lock: Path) -> int | None:
    """A handle of the lock file that holds the lock; None if another has it."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _locked(handle, lock):
                os.close(handle)
                return None
            if _is(handle, lock):
                with suppress(OSError):  # a full disk: it holds all the same
                    os.truncate(handle, 0)
                    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder has removed it between our opening and locking it: nobody else would see ours


def hold(path: Path) -> int | None:
    """Make a file, and lock it for as long as the handle is open: whoever finds it knows by `left_behind`."""
    if os.name == "nt":  # there, a file that is open cannot be renamed
        return None
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    with suppress(OSError):
        _lock(handle)
    return handle


def left_behind(path: Path) -> bool:
    """Was this file, made by `hold`, left by a process that is gone?"""
    if os.name == "nt":
        return False
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        _lock(handle)
        return _is(handle, path)
    except OSError:  # held, or no locks are known here
        return False
    finally:
        os.close(handle)


def _is(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _locked(handle: int, lock: Path) -> bool:
    try:
        _lock(handle)
    except OSError as problem:
        if problem.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        warnings.warn(
            f"the disk of {str(lock.parent)!r} knows no locks ({problem.strerror}): see to it that no other process "
            "writes the same",
            stacklevel=4,
        )
    return True


def _lock(handle: int) -> None:
    if os.name == "nt":
        import msvcrt

        os.lseek(handle, 1 << 20, os.SEEK_SET)  # beyond its words, which others read
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        os.lseek(handle, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(lock: Path) -> str:
    try:
        said = re.fullmatch(r"process \d+ on \S+", lock.read_text(encoding="utf-8", errors="replace")[:200].strip())
    except OSError:
        said = None
    return f" ({said[0]})" if said else ""


def _forget_all() -> None:
    for claim in _held:
        claim.forget()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
