"""Which model it is, so that a change is seen: a name and a hash of its files. Loads nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from besag import models

KEPT = (".json", ".txt", ".model", ".safetensors", ".bin", ".codes")  # endings of files that make a model


def about_model(name: str | None, revision: str | None) -> dict[str, Any]:
    """The model's name, and a hash of its files; a hub's model is fetched for it."""
    if name is None or models.is_bundled(name):
        return {"name": models.EMBEDDED, "hash": files_hash(models.path())}
    if os.path.isdir(os.path.expanduser(name)):
        return {"name": Path(name).name, "hash": files_hash(os.path.expanduser(name))}
    from besag.conditionals.checkpoint import WEIGHT_FILES, find_folder

    return {"name": name, "hash": files_hash(find_folder(name, revision, *WEIGHT_FILES))}


def files_hash(folder: str | os.PathLike[str]) -> str:
    """Of names and contents."""
    digest = hashlib.sha256()
    with os.scandir(folder) as entries:
        found = sorted(entry.path for entry in entries if entry.is_file() and entry.name.endswith(KEPT))
    for path in found:
        with open(path, "rb") as file:
            digest.update(f"{os.path.basename(path)}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode())
    return digest.hexdigest()[:32]
