"""A tokenizer's folder, written beside its place and moved there when whole. Knows files, not what is in them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from besag.errors import BesagError, quoted
from besag.files.folders import let_others_read, whole_folder


def save_whole(tokenizer: Any, folder: str | Path, notes: Mapping[str, str] | None = None) -> None:
    """Write the tokenizer, and `notes` (text by file name) beside it. Other files in the folder stay as they are.

    A new folder is there with everything in it or not at all. Where it holds other files, each file is replaced as a
    whole, the notes last: whoever finds them finds all.
    """
    place, notes = Path(folder), notes or {}
    try:
        if not place.is_dir() or not any(place.iterdir()):
            with whole_folder(place) as draft:
                _write(tokenizer, draft, notes)
            return
        draft = place.absolute().with_name(f".{place.absolute().name}.unfinished")
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            _write(tokenizer, draft, notes)
            let_others_read(draft)
            for file in sorted(draft.iterdir(), key=lambda one: (one.name in notes, one.name)):
                os.replace(file, place / file.name)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except Exception as problem:  # tokenizers has no error of its own for a disk that is full
        why = getattr(problem, "strerror", None) or str(problem).strip().split("\n")[0]
        raise BesagError(f"the tokenizer could not be written to {quoted(str(folder))}: {why}") from problem


def _write(tokenizer: Any, folder: Path, notes: Mapping[str, str]) -> None:
    tokenizer.save_pretrained(str(folder))
    _forget_where(folder / "tokenizer_config.json")
    for name, text in notes.items():
        (folder / name).write_text(text, encoding="utf-8")


def _forget_where(file: Path) -> None:
    """Take out what some versions of transformers write of how the tokenizer was once loaded: it is no part of it."""
    if file.exists():
        known = json.loads(file.read_text(encoding="utf-8"))
        kept = {name: value for name, value in known.items() if name not in ("is_local", "local_files_only")}
        file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
