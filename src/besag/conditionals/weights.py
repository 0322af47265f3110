"""The weights of a saved network: which files hold them, what shapes they have, and the tensors themselves.

Only safetensors are read, out of one folder, unless a pickle is allowed; an index may name files of that folder and no
others. A link is followed: in the hub's cache every file is one. Weights in eight bits lie in a file of another name,
so that whoever does not know them finds none. Knows file names and headers. Refuses to know what the weights are for.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from besag.conditionals.configuration import is_plain_name, read_json, reason
from besag.errors import BesagError, quoted

if TYPE_CHECKING:
    from besag.conditionals.eight_bits import Rows

Shapes = dict[str, tuple[int, ...]]

SAFE, EIGHT_BITS, PICKLE = "model.safetensors", "model.int8.safetensors", "pytorch_model.bin"
INDEX = ".index.json"
SCALE = ".scale"  # after the name of a matrix in eight bits: its scales
MOST_DIMENSION = 2**40  # of a tensor; what a header on the hub says is not checked by anybody else
PICKLE_DANGER = (
    "a pickle can run any program on this machine while it is read. If you trust whoever made it, insist with "
    "allow_pickle=True"
)


def has_weights(folder: Path, whole: str = SAFE) -> bool:
    also = (EIGHT_BITS,) if whole == SAFE else ()
    return any((folder / file).is_file() for file in (whole, whole + INDEX, *also))


def in_eight_bits(files: list[Path]) -> bool:
    return [file.name for file in files] == [EIGHT_BITS]


def weight_files(folder: Path, name: str, allow_pickle: bool) -> list[Path]:
    """The files that hold the weights: safetensors, or else a pickle that is allowed; otherwise refused."""
    if has_weights(folder):
        return _files(folder, name, SAFE)
    pickled = has_weights(folder, PICKLE)
    if pickled and allow_pickle:
        return _files(folder, name, PICKLE)
    if pickled:
        raise BesagError(f"{quoted(name)} has its weights only as a pickle ({PICKLE}), and {PICKLE_DANGER}")
    raise BesagError(
        f"{quoted(name)} has no weights as safetensors (no {SAFE})"
        + ("" if allow_pickle else f"; should it have them as a pickle only: {PICKLE_DANGER}")
    )


def _files(folder: Path, name: str, whole: str) -> list[Path]:
    if (folder / whole).is_file():
        return [folder / whole]
    if whole == SAFE and not (folder / (whole + INDEX)).is_file():
        return [folder / EIGHT_BITS]
    what, end = f"the {whole}{INDEX} of {quoted(name)}", Path(whole).suffix
    named = read_json(folder / (whole + INDEX), what).get("weight_map")
    if not isinstance(named, dict) or not named:
        raise BesagError(f"{what} cannot be used: it has no weight_map, which says where each weight lies")
    for part in named.values():
        if not is_plain_name(part) or not part.endswith(end):
            raise BesagError(
                f"{what} names {quoted(part)}, where it may name only {end.lstrip('.')} files of its own folder"
            )
    files = [folder / part for part in sorted(set(named.values()))]
    for file in files:
        if not file.is_file():
            raise BesagError(f"{what} names {quoted(file.name)}, which is not there")
    return files


def stored_shapes(files: list[Path], name: str) -> Shapes:
    """Name and shape of every tensor in safetensors files, from their headers: no weight is read."""
    from safetensors import safe_open

    shapes = {}
    for file in files:
        try:
            with safe_open(file, framework="numpy") as stored:
                names = stored.keys()
                shapes.update({key: tuple(stored.get_slice(key).get_shape()) for key in names})
        except Exception as problem:  # the header is checked against the file: neither may promise what is not there
            raise BesagError(f"the weights of {quoted(name)} cannot be read: {reason(problem)}") from problem
    return _without_scales(shapes) if in_eight_bits(files) else shapes


def is_scale(name: str, names: Mapping[str, object]) -> bool:
    """Does it belong to a matrix of the same file?"""
    return name.endswith(SCALE) and name.removesuffix(SCALE) in names


def _without_scales(shapes: Shapes) -> Shapes:
    return {key: shape for key, shape in shapes.items() if not is_scale(key, shapes)}


def shapes_on_the_hub(name: str, revision: str | None) -> Shapes:
    """The same of a model on the hub, of which the headers alone are fetched; nothing where it has no safetensors."""
    from huggingface_hub import file_exists, get_safetensors_metadata, parse_safetensors_file_metadata
    from huggingface_hub.errors import NotASafetensorsRepoError

    try:
        try:
            stored = list(get_safetensors_metadata(name, revision=revision).files_metadata.values())
        except NotASafetensorsRepoError:
            if not file_exists(name, EIGHT_BITS, revision=revision):
                return {}
            stored = [parse_safetensors_file_metadata(name, EIGHT_BITS, revision=revision)]
        shapes = {key: tuple(map(int, tensor.shape)) for file in stored for key, tensor in file.tensors.items()}
    except Exception as problem:
        raise BesagError(f"what weights {quoted(name)} has could not be asked: {reason(problem)}") from problem
    for key, shape in shapes.items():
        if len(shape) > 8 or not all(0 <= size <= MOST_DIMENSION for size in shape):
            raise BesagError(f"the weights of {quoted(name)} cannot be used: {quoted(key)} has the shape {shape}")
    return _without_scales(shapes)


def read_weights(files: list[Path], name: str) -> dict[str, Any]:
    """Every tensor in these files by its name, on the CPU and, where the system can, read when it is looked at.

    Matrices in eight bits become float32.
    """
    stored = _read(files, name)
    if not in_eight_bits(files):
        return stored
    from besag.conditionals.eight_bits import unpack  # brings torch

    return unpack(stored, quoted(name))


def read_rows(files: list[Path], name: str) -> dict[str, Rows]:
    """The matrices that are stored in eight bits, as they are; none in files of another kind."""
    if not in_eight_bits(files):
        return {}
    from besag.conditionals.eight_bits import rows_of

    return rows_of(_read(files, name), quoted(name))


def _read(files: list[Path], name: str) -> dict[str, Any]:
    weights: dict[str, Any] = {}
    for file in files:
        try:
            weights.update(_tensors(file))
        except Exception as problem:  # a torn file, a pickle that is none, numbers that torch has no name for …
            raise BesagError(f"the weights of {quoted(name)} cannot be read: {reason(problem)}") from problem
    return weights


def _tensors(file: Path) -> dict[str, Any]:
    import torch

    if file.name.endswith(Path(SAFE).suffix):
        from safetensors.torch import load_file

        return load_file(file)
    # Even where it is allowed, a pickle may hold nothing but tensors: all that weights need.
    found = torch.load(file, map_location="cpu", weights_only=True)
    if not isinstance(found, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in found.values()):
        raise BesagError("it holds something else than named tensors")
    return found


def shapes_of(weights: dict[str, Any]) -> Shapes:
    return {key: tuple(tensor.shape) for key, tensor in weights.items()}


def size(shapes: Shapes) -> int:
    """How many numbers they hold together."""
    return sum(prod(shape) for shape in shapes.values())
