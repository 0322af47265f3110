"""An adapter as a folder: a few weights that stand beside a trained network, kept apart from it.

    adapter.safetensors   the weights of the adapter alone
    config.json           its kind and rank, the network it was trained beside, and the digest of that network's weights

Weights that were trained beside one network mean nothing beside another. So an adapter is put on a network only where
every shape fits and the digest of the stored weights is the same; shapes are compared by headers, before a weight is
read. Only safetensors are read. What the weights do is known to `additions.py`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from besag.checks import is_number
from besag.conditionals import additions, weights
from besag.conditionals import checkpoint as saved
from besag.conditionals.configuration import ADAPTER_KEY, read_json, reason
from besag.errors import BesagError, quoted

FILE, CONFIG = "adapter.safetensors", "config.json"
MOST_RANK, MOST_ALPHA = 2**16, 10**6
MOST_BYTES = 2**34  # of the weights: far more than any adapter has
DIGEST = re.compile(r"[0-9a-f]{64}")
SHOWN = 12  # digits of a digest in an error


class Adapter(NamedTuple):
    """What a config.json says of an adapter."""

    kind: additions.Kind
    rank: int
    alpha: float  # of low-rank additions, which are scaled by alpha / rank
    base: str  # what the network was called that it was trained beside
    sha256: str  # of that network's weights


class Base(NamedTuple):
    """A network that adapters are put on."""

    name: str
    folder: Path
    sha256: str  # of its weights as they are stored


def digest(stored: Mapping[str, torch.Tensor]) -> str:
    """A SHA-256 of weights as they are stored: names, kinds of numbers, shapes and every bit."""
    found = hashlib.sha256()
    for name in sorted(stored):
        tensor = stored[name].detach().cpu()
        found.update(f"{name}\t{tensor.dtype}\t{tuple(tensor.shape)}\n".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def digest_of(folder: Path, name: str, allow_pickle: bool = False) -> str:
    """The same of the weights that lie in the folder of a network."""
    return digest(weights.read_weights(weights.weight_files(folder, name, allow_pickle), name))


def save(folder: Path, about: Adapter, added: Mapping[str, torch.Tensor]) -> None:
    """Write the two files into a folder that is there."""
    from safetensors.torch import save_file

    kept = {name: weight.detach().float().cpu().contiguous() for name, weight in added.items()}
    save_file(kept, folder / FILE)
    said: dict[str, Any] = {ADAPTER_KEY: about.kind, "rank": about.rank}
    said |= {"alpha": about.alpha} if about.kind == "lora" else {}
    said |= {"base": about.base, "base_sha256": about.sha256}
    (folder / CONFIG).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")


def read(adapter: str | Path) -> tuple[Adapter, Path]:
    """What an adapter is, from its config.json, and the folder it lies in."""
    folder = saved.find_folder(adapter, None, FILE)
    what = f"the {CONFIG} of the adapter {quoted(str(adapter))}"
    if not (folder / CONFIG).is_file() or not (folder / FILE).is_file():
        lacks = FILE if (folder / CONFIG).is_file() else CONFIG
        raise BesagError(
            f"{quoted(str(adapter))} is no adapter: it holds no {lacks} (besag train writes OUTPUT/adapter)"
        )
    said = read_json(folder / CONFIG, what)
    kind, rank, alpha = said.get(ADAPTER_KEY), said.get("rank"), said.get("alpha", 1.0)
    base, sha256 = said.get("base"), said.get("base_sha256")
    if kind not in additions.KINDS:
        known = " or ".join(map(repr, additions.KINDS))
        raise BesagError(f"{what} cannot be used: {ADAPTER_KEY} is {quoted(kind)}, and should be {known}")
    if not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= MOST_RANK:
        raise BesagError(f"{what} cannot be used: rank is {quoted(rank)}, and should be a number from 1 to {MOST_RANK}")
    if not is_number(alpha) or not 0 < alpha <= MOST_ALPHA:
        raise BesagError(f"{what} cannot be used: alpha is {quoted(alpha)}, and should be in (0, {MOST_ALPHA}]")
    if not isinstance(base, str) or not isinstance(sha256, str) or not DIGEST.fullmatch(sha256):
        raise BesagError(
            f"{what} cannot be used: base is {quoted(base)} and base_sha256 {quoted(sha256)}, and should be a name and "
            "64 hexadecimal digits"
        )
    return Adapter(kind, rank, float(alpha), base, sha256), folder


def put_on(network: Any, adapter: str | Path, name: str, sha256: str) -> str:
    """Put an adapter on a network whose stored weights have this digest; the digest of the adapter's own weights."""
    about, folder = read(adapter)
    file = folder / FILE
    if file.stat().st_size > MOST_BYTES:
        raise BesagError(
            f"{quoted(str(file))} has {file.stat().st_size:,} bytes; an adapter has at most {MOST_BYTES:,}"
        )
    at = _check_shapes(network, about, file, str(adapter), name)
    if sha256 != about.sha256:
        raise BesagError(
            f"the adapter {quoted(str(adapter))} was trained beside {quoted(about.base)}, whose weights have the "
            f"digest {about.sha256[:SHOWN]}…, and those of {quoted(name)} have {sha256[:SHOWN]}…: they are others"
        )
    stored = _tensors(file)
    with torch.random.fork_rng(devices=[]):  # what new layers draw is written over, and is nobody's loss
        if about.kind == "bottleneck":
            additions.attach_bottlenecks(network, about.rank)
        else:
            additions.attach_low_rank(network, about.rank, about.alpha, at)
    own = additions.added(network)
    with torch.no_grad():
        for key, weight in own.items():
            weight.copy_(stored[key])
    return digest(stored)


def _check_shapes(network: Any, about: Adapter, file: Path, adapter: str, name: str) -> list[str]:
    """Refuse weights that do not fit the network, by the header of their file; the layers that they stand beside."""
    title = f"the adapter {quoted(adapter)}, trained beside {quoted(about.base)}, does not fit {quoted(name)}"
    stored = weights.stored_shapes([file], adapter)
    at: list[str] = []
    if about.kind == "lora":
        at = sorted({key.partition(f".{additions.NAME}.")[0] for key in stored})
        unknown = set(at) - set(additions.linear(network))
        if unknown or not at:
            raise BesagError(
                f"{title}: it stands beside {quoted(min(unknown, default=''))}, which is no linear layer of it"
            )
    wanted = additions.shapes(network, about.kind, about.rank, at)
    for key in sorted(wanted.keys() | stored.keys()):
        if wanted.get(key) != stored.get(key):
            found, right = (str(one.get(key, "not there")) for one in (stored, wanted))
            raise BesagError(f"{title}: its {quoted(key)} is {found}, and should be {right}")
    return at


def _tensors(file: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    try:
        stored: dict[str, torch.Tensor] = load_file(file)
    except Exception as problem:
        raise BesagError(f"{quoted(str(file))} cannot be read: {reason(problem)}") from problem
    for key, weight in stored.items():
        if not weight.is_floating_point() or not bool(weight.isfinite().all()):
            raise BesagError(
                f"{quoted(str(file))} cannot be used: {quoted(key)} holds something else than finite numbers"
            )
    return stored
