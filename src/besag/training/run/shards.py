"""A nested state in files of bounded size: safetensors, and one of JSON that says how they hang together.

Numbers, texts and the names of tensors go to `state.json`; tensors go to `state-00001.safetensors` and so on, none
larger than asked. A tensor that does not fit into what is left of a file goes on in the next one, by rows; its piece
that begins at row r has the name NAME@r. Tensors that share their memory are written once. Tables come back with texts
for keys, tuples as lists. Knows files and their checksums, not what is in them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from besag.errors import BesagError

TREE, SHARD = "state.json", "state-{:05d}.safetensors"
NAMES = re.compile(r"state\.json|state-\d{5,}\.safetensors")
LEAF = "$tensor"
HEAD, ENTRY, DIMENSION = 16, 96, 24  # bytes of a file's own head, at most: of itself, of a tensor, of one dimension

Files = dict[str, dict[str, Any]]  # bytes and sha256 by name


def write(folder: Path, state: Mapping[str, Any], most: int) -> Files:
    """Write a state into a folder, in files of at most `most` bytes; what was written."""
    tensors: dict[str, Tensor] = {}
    tree = _parted(state, "", tensors, {})
    written = {
        SHARD.format(number): put(folder / SHARD.format(number), save(pieces))
        for number, pieces in enumerate(_shards(tensors, most), 1)
    }
    return {TREE: put(folder / TREE, json.dumps(tree).encode()), **written}


def read(folder: Path, files: Mapping[str, Any]) -> dict[str, Any]:
    """The state that `write` wrote, on the CPU."""
    pieces: dict[str, list[tuple[int, Tensor]]] = {}
    for file in sorted(files):
        if file == TREE:
            continue
        try:
            found = load_file(folder / file)
        except SafetensorError as problem:
            raise BesagError(f"{str(folder / file)!r} is no file of a checkpoint: {problem}") from problem
        for key, tensor in found.items():
            name, _, row = key.rpartition("@")
            pieces.setdefault(name, []).append((int(row), tensor))
    joined = {name: _joined(parts) for name, parts in pieces.items()}
    state: dict[str, Any] = _put_together(json.loads((folder / TREE).read_text(encoding="utf-8")), joined)
    return state


def fault(folder: Path, files: Mapping[str, Any]) -> str:
    """What is missing or not as it was written, in words; nothing if all is whole."""
    wrong = [words for name, about in files.items() if (words := _fault(folder / name, about))]
    return ", ".join(wrong[:4]) + (f" and {len(wrong) - 4} more" if len(wrong) > 4 else "")


def put(path: Path, content: bytes) -> dict[str, Any]:
    """Write a file through to the disk; its size and checksum."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def checksum(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _fault(path: Path, about: Mapping[str, Any]) -> str:
    if not path.is_file():
        return f"{path.name} is missing"
    size = path.stat().st_size
    if size != about["bytes"]:
        return f"{path.name} has {size:,} bytes instead of {about['bytes']:,}"
    return "" if checksum(path) == about else f"{path.name} is another file than was written (by its checksum)"


# ---- tensors and the rest


def _parted(value: Any, path: str, tensors: dict[str, Tensor], known: dict[Any, str]) -> Any:
    """The state with the names of its tensors in their places; they are put aside."""
    if isinstance(value, Tensor):
        held = value.detach()
        same = (held.device, held.data_ptr(), held.dtype, held.shape, held.stride())
        name = known.setdefault(same, path) if held.numel() else path
        tensors.setdefault(name, held)
        return {LEAF: name, "dtype": str(held.dtype).removeprefix("torch."), "shape": list(held.shape)}
    if isinstance(value, Mapping):
        below = f"{path}/" if path else ""
        return {str(key): _parted(part, f"{below}{key}", tensors, known) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_parted(part, f"{path}/{number}", tensors, known) for number, part in enumerate(value)]
    return value


def _put_together(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_put_together(part, tensors) for part in value]
    if not isinstance(value, dict):
        return value
    if LEAF not in value:
        return {key: _put_together(part, tensors) for key, part in value.items()}
    return tensors[value[LEAF]].reshape(value["shape"])


def _joined(parts: list[tuple[int, Tensor]]) -> Tensor:
    if len(parts) == 1:
        return parts[0][1]
    return torch.cat([tensor for _, tensor in sorted(parts, key=lambda part: part[0])])


# ---- tensors to files


def _shards(tensors: Mapping[str, Tensor], most: int) -> Iterator[dict[str, Tensor]]:
    """The pieces of each file, one file after the other."""
    pieces: dict[str, Tensor] = {}
    left = most - HEAD
    for name, tensor in tensors.items():
        rows = tensor.cpu().contiguous()
        if _row(rows) > most - HEAD - _entry(name, rows) or rows.ndim == 0:
            rows = rows.flatten()  # a row that is too long for a file: its entries are the rows
        start = 0
        while start < len(rows) or start == 0:
            fit = (left - _entry(name, rows)) // max(_row(rows), 1)
            if fit <= 0 and pieces:
                yield pieces
                pieces, left = {}, most - HEAD
                continue
            piece = rows[start : start + max(fit, 1)]
            pieces[f"{name}@{start}"] = piece.clone()  # safetensors wants memory of its own for each
            left -= _entry(name, rows) + piece.numel() * piece.element_size()
            start += max(len(piece), 1)
    if pieces:
        yield pieces


def _row(rows: Tensor) -> int:
    """Bytes of a row."""
    return rows[:1].numel() * rows.element_size() if rows.ndim else rows.element_size()


def _entry(name: str, rows: Tensor) -> int:
    """Bytes that the head of a file spends on one piece, at most."""
    return len(json.dumps(name)) + ENTRY + DIMENSION * rows.ndim
