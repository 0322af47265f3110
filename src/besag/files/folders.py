"""Folders that exist whole or not at all: filled as `.NAME.unfinished` in the same place, then renamed.

A reader finds the old folder, the new one, or none for the moment between two renames; never a part of either. A
process that is killed between the two leaves both under their other names, and the next call first puts the finished
draft in its place. One process fills a folder at a time (`.NAME.filling.lock`); a second one is rejected. The files in
it get the mode of new files, though some libraries write theirs for the owner alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from besag.errors import BesagError, quoted
from besag.files.claim import Claim


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Return an empty folder to fill; it takes the place of `path` if all goes well, and is removed if not."""
    final = Path(path).absolute()
    draft, old = (final.with_name(f".{final.name}.{word}") for word in ("unfinished", "old"))
    final.parent.mkdir(parents=True, exist_ok=True)
    with _claim(final):
        if old.exists() and not final.exists():  # killed between the two renames: the draft is finished
            (draft if draft.exists() else old).rename(final)
        for left in (old, draft):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        draft.mkdir()
        try:
            yield draft
            let_others_read(draft)
            _put_in_place(final, draft, old)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _claim(final: Path) -> Claim:
    """The lock of a folder that is being filled, held by nothing else: callers may hold the folder's own."""
    guard = final.with_name(f".{final.name}.filling")
    try:
        return Claim(guard, "name another folder")
    except BesagError as problem:
        raise BesagError(str(problem).replace(quoted(str(guard)), quoted(str(final)))) from problem


def _put_in_place(final: Path, draft: Path, old: Path) -> None:
    """Put the draft in the place of the folder, which gets the name `old`; if that fails, the folder stays."""
    try:
        if final.exists():
            final.rename(old)
        draft.rename(final)
    except BaseException:  # Ctrl-C between the two, too
        if old.exists() and not final.exists():
            old.rename(final)
        raise


def let_others_read(folder: Path) -> None:
    """Give every file in a folder the mode of a new file: as the umask says, which cannot be asked safely."""
    probe = folder / ".mode"
    probe.touch()
    usual = probe.stat().st_mode
    probe.unlink()
    for place, _, names in os.walk(folder):
        for name in names:
            os.chmod(os.path.join(place, name), usual)
