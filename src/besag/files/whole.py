"""Files that are there whole or not at all: written under another name in the same folder, then renamed.

Knows nothing of what is written. What is no ordinary file (a pipe, a device, /dev/stdout) is written as it is. Who is
killed leaves a draft, `.NAME-draft-1a2b3c4d.ENDING`, and the next one that writes the same file removes it.
Drafts are locked while they are written, so nobody else's is.
"""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from besag.errors import BesagError, quoted
from besag.files.claim import hold, left_behind

_looked_at: set[Path] = set()  # files whose old drafts are gone
_under_way: set[Path] = set()  # drafts of this process

_DESCRIPTOR = re.compile(r"/dev/(?:std(out|err)|fd/(\d{1,9}))|/proc/self/fd/(\d{1,9})", re.ASCII)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Is it written as it is: a device, a pipe, a descriptor that a shell has opened?"""
    return descriptor(path) is not None or (
        os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    )


def descriptor(path: str | os.PathLike[str]) -> int | None:
    """The open file that /dev/stdout, /dev/stderr and /dev/fd/N stand for."""
    found = _DESCRIPTOR.fullmatch(os.fspath(path))
    if found is None or not os.path.exists(path):
        return None
    number = found[2] or found[3]
    return int(number) if number else {"out": 1, "err": 2}[found[1]]


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name to write under, with the ending of `path`; the file takes the place of `path` if all goes well.

    A draft is written as it is: it has a place to take.
    """
    if is_stream(path) or Path(path) in _under_way:
        yield Path(path)
        return
    final = Path(os.path.realpath(path))  # where a link leads: the link stays
    if final.is_dir():
        raise BesagError(f"{os.fspath(path)!r} is a folder, not a file")
    if not final.parent.is_dir():
        raise BesagError(f"no such folder: {str(final.parent)!r}, to write {final.name!r} in")
    _remove_old_drafts(final)
    draft = _draft(final, secrets.token_hex(4))
    handle: int | None = None
    try:
        handle = hold(draft)
        _under_way.add(draft)
        yield draft
        sync(draft)
        if final.exists():
            shutil.copymode(final, draft)
        os.replace(draft, final)
    except OSError as failure:  # a full disk names no file
        if failure.filename not in (None, str(draft)):
            raise
        raise BesagError(f"cannot write {quoted(os.fspath(path))}: {failure.strerror or failure}") from failure
    finally:
        _under_way.discard(draft)
        with suppress(OSError):
            draft.unlink()
        if handle is not None:
            os.close(handle)


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """A text in UTF-8, its line ends as they are."""
    with whole(path) as draft:
        draft.write_bytes(text.encode("utf-8"))


def write_arrays(path: str | os.PathLike[str], about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write arrays, and what they are as JSON under the name `about`, as npz.

    The archive is made in memory, with interruptions held back: one that arrives within `zipfile` becomes a ValueError
    of the archive, which can no longer be closed.
    """
    import numpy as np  # the command line starts without it

    made = io.BytesIO()
    with held_back():
        np.savez(made, about=np.array(json.dumps(about)), **arrays)
    with whole(path) as draft:
        draft.write_bytes(made.getbuffer())


@contextmanager
def held_back() -> Iterator[None]:
    """Hold back SIGINT and SIGTERM until the end of the block, where the first of them is handled; a second is not.

    Only handlers written in Python are put off, and only in the main thread, where Python calls them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Callable[..., Any]] = {}
    pending: list[int] = []
    held = True

    def arrived(number: int, frame: object) -> None:
        if held and not pending:
            pending.append(number)
        else:
            before[number](number, frame)

    try:
        for one in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(one)
            if callable(handler):
                before[one] = handler
                signal.signal(one, arrived)
        yield
    finally:
        held = False  # from here on what arrives is handed on, whichever handler is in place
        for number, own in before.items():
            signal.signal(number, own)
        for number in pending:
            before[number](number, None)


def sync(path: str | os.PathLike[str]) -> None:
    """Let what is written outlive a power cut."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _draft(final: Path, mark: str) -> Path:
    stem = os.fsencode(final.stem)[:100].decode("utf-8", "ignore")  # names have an end, in bytes
    return final.with_name(f".{stem}-draft-{mark}{final.suffix}")


def _remove_old_drafts(final: Path) -> None:
    if final in _looked_at:
        return
    _looked_at.add(final)
    alike = re.compile(re.escape(_draft(final, "MARK").name).replace("MARK", "[0-9a-f]{8}"))
    with suppress(OSError), os.scandir(final.parent) as entries:
        for entry in entries:
            if alike.fullmatch(entry.name) and left_behind(Path(entry.path)):
                os.unlink(entry.path)
