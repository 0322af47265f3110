"""Folders that are there whole or not at all: filled under another name beside their place, then renamed.

Whoever looks finds the old folder, the new one, or for the moment between two renames none; never a part of either. A
process that is killed between the two leaves the new folder as a draft, which the next call puts in place. The files in
it may be read by whoever may read other files, though some libraries write theirs for the owner alone. Knows nothing of
what is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty folder to fill; it takes the place of `path` if all goes well, and is gone if not."""
    final = Path(path).absolute()
    draft, old = (final.with_name(f".{final.name}.{word}") for word in ("unfinished", "old"))
    if old.exists() and not final.exists():  # killed between the two renames: the draft is whole
        (draft if draft.exists() else old).rename(final)
    shutil.rmtree(draft, ignore_errors=True)  # of a process that was killed
    draft.mkdir(parents=True)
    try:
        yield draft
        let_others_read(draft)
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            final.rename(old)
        draft.rename(final)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def let_others_read(folder: Path) -> None:
    """Give every file in a folder the mode of a new file: as the umask says, which cannot be asked safely."""
    probe = folder / ".mode"
    probe.touch()
    usual = probe.stat().st_mode
    probe.unlink()
    for place, _, names in os.walk(folder):
        for name in names:
            os.chmod(os.path.join(place, name), usual)
