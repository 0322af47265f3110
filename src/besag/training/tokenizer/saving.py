"""A tokenizer's folder, written beside its place and moved there when whole. Knows files, not what is in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from besag.errors import BesagError


def save_whole(tokenizer: Any, folder: str | Path, notes: Mapping[str, str] | None = None) -> None:
    """Write the tokenizer, and `notes` (text by file name) beside it. Other files in the folder stay as they are."""
    named, folder = str(folder), Path(folder).absolute()
    draft = folder.with_name(f".{folder.name}.unfinished")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        tokenizer.save_pretrained(str(draft))
        for name, text in (notes or {}).items():
            (draft / name).write_text(text, encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for file in sorted(draft.iterdir()):
            os.replace(file, folder / file.name)
    except Exception as problem:  # tokenizers has no error of its own for a disk that is full
        why = getattr(problem, "strerror", None) or str(problem).strip().split("\n")[0]
        raise BesagError(f"the tokenizer could not be written to {named!r}: {why}") from problem
    finally:
        shutil.rmtree(draft, ignore_errors=True)
