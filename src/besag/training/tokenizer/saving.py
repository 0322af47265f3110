"""A tokenizer's folder, written beside its place and moved there when whole. Knows files, not what is in them."""

from __future__ import annotations

import json
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
        _forget_where(draft / "tokenizer_config.json")
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


def _forget_where(file: Path) -> None:
    """Take out what some versions of transformers write of how the tokenizer was once loaded: it is no part of it."""
    if file.exists():
        known = json.loads(file.read_text(encoding="utf-8"))
        kept = {name: value for name, value in known.items() if name not in ("is_local", "local_files_only")}
        file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
